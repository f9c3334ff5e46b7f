#include "model/remat.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace dz::model {
namespace {

constexpr Remat again(std::initializer_list<Stage> stages) {
  Remat remat;
  for (const Stage stage : stages) remat.recomputed = static_cast<uint8_t>(remat.recomputed | 1u << static_cast<int>(stage));
  return remat;
}

constexpr std::array<std::pair<std::string_view, Remat>, 4> kPresets = {{
    {"none", Remat::kNone},
    {"minimal_with_context", again({Stage::kTurned, Stage::kMiddle})},
    {"save_dot_with_context_except_mlp", again({Stage::kTurned, Stage::kMiddle, Stage::kGateUp, Stage::kDown})},
    {"full", Remat::kFull},
}};

std::optional<Stage> stage_of(std::string_view name) {
  for (const Stage stage : kStages) {
    if (name_of(stage) == name) return stage;
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(Stage stage) {
  constexpr std::array<std::string_view, kStages.size()> kNames = {"qkv", "turned", "context", "out", "middle", "gate_up", "down"};
  return kNames[static_cast<size_t>(stage)];
}

std::optional<Remat> parse_remat(std::string_view text) {
  for (const auto& [name, remat] : kPresets) {
    if (name == text) return remat;
  }
  Remat remat;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::optional<Stage> stage = stage_of(text.substr(begin, end - begin));
    if (!stage) return std::nullopt;
    remat.recomputed = static_cast<uint8_t>(remat.recomputed | again({*stage}).recomputed);
    begin = end + 1;
  }
  return remat;
}

std::vector<std::string_view> remat_presets() {
  std::vector<std::string_view> names;
  for (const auto& preset : kPresets) names.push_back(preset.first);
  return names;
}

std::string remat_choices() {
  std::vector<std::string_view> stages;
  for (const Stage stage : kStages) stages.push_back(name_of(stage));
  return fmt::format("one of {}, or stages of a layer with commas between them, of {}", fmt::join(remat_presets(), ", "), fmt::join(stages, ", "));
}

std::string to_text(Remat remat) {
  for (const auto& [name, preset] : kPresets) {
    if (preset == remat) return std::string(name);
  }
  std::string text;
  for (const Stage stage : kStages) {
    if (remat.recomputes(stage)) text += (text.empty() ? "" : ",") + std::string(name_of(stage));
  }
  return text;
}

}  // namespace dz::model
