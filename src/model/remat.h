// What a layer's backward pass finds in memory and what it computes again. Every value is rounded at the same points either way, so no choice
// moves a bit.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dz::model {

// The steps of a layer's forward pass, in order, each with the activations that it makes. In brackets the names that MaxText gives them.
enum class Stage : uint8_t {
  kQkv,      // q, k, v [query_proj, key_proj, value_proj]
  kTurned,   // q, k after QK-norm and RoPE
  kContext,  // the attention's output and row statistics [context]
  kOut,      // its projection [out_proj]
  kMiddle,   // the residual stream after attention
  kGateUp,   // gate, up [mlpwi_0, mlpwi_1]
  kDown,     // down [mlpwo]
};
inline constexpr std::array kStages = {Stage::kQkv, Stage::kTurned, Stage::kContext, Stage::kOut, Stage::kMiddle, Stage::kGateUp, Stage::kDown};

std::string_view name_of(Stage stage);  // a literal: qkv, turned, context, out, middle, gate_up, down

// The stages whose activations are not kept. A layer's input and the row statistics of norms and attention always are.
struct Remat {
  uint8_t recomputed = 0;  // bit i: kStages[i]

  bool recomputes(Stage stage) const { return (recomputed >> static_cast<int>(stage) & 1) != 0; }
  friend bool operator==(const Remat&, const Remat&) = default;

  static const Remat kNone, kFull;
};

inline constexpr Remat Remat::kNone{};
inline constexpr Remat Remat::kFull{(1 << kStages.size()) - 1};

// A preset, or names of stages with commas between them; nothing when it is neither. Presets, each keeping less than the one before:
//   none                              everything is kept
//   minimal_with_context              turned and middle again: no matrix product
//   save_dot_with_context_except_mlp  also gate_up and down
//   full                              everything again but a layer's input
std::optional<Remat> parse_remat(std::string_view text);

std::vector<std::string_view> remat_presets();  // in that order
std::string remat_choices();                    // for messages: the presets and the stages
std::string to_text(Remat remat);               // the preset when there is one

}  // namespace dz::model
