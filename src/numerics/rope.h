// Rotary position embeddings: inverse frequencies, plain or stretched by YaRN, and the table of cosines and sines (docs/numerics.md, "RoPE table").
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace dz::numerics {

// kReference is what the Python implementations do: the angle is float position times float inverse frequency, rounded to float.
// kExact takes the angle in double. The recipe's key is recipe.rope.table.
enum class RopeTableKind : uint8_t { kReference, kExact };

// YaRN: a model trained on `original_max_position_embeddings` positions reads `factor` times as many. Fast pairs keep their frequency, slow ones
// are divided by `factor`, and a ramp lies between them: it begins at the pair that turns beta_fast times within the original context and ends
// at the one that turns beta_slow times. Cosines and sines are multiplied by attention_factor. Names and defaults: transformers, modeling_rope_utils.
struct YarnScaling {
  double factor = 1;
  int64_t original_max_position_embeddings = 8192;
  double beta_fast = 32;
  double beta_slow = 1;
  double attention_factor = 1;
  bool truncate = true;  // the ends of the ramp are whole pairs: rounded down and up
  friend bool operator==(const YarnScaling&, const YarnScaling&) = default;
};

// 0.1 ln(factor) + 1: the attention factor where none is given. factor is at least 1.
double yarn_attention_factor(double factor);

// First and last pair of the ramp: max(corr(beta_fast), 0) and min(corr(beta_slow), head_dim - 1), where
// corr(turns) = head_dim ln(original / (2 pi turns)) / (2 ln theta).
struct YarnRamp {
  double low = 0, high = 0;
};
YarnRamp yarn_ramp(int64_t head_dim, double theta, const YarnScaling& yarn);

// What decides a table. head_dim is even and positive, theta above 1.
struct RopeShape {
  int64_t head_dim = 0;
  double theta = 500000.0;
  std::optional<YarnScaling> yarn;
};

// 1 / theta^(2i / head_dim) for i < head_dim / 2, with the roundings of the references: x = float(2i) / float(head_dim),
// p = float(pow(double(theta), double(x))), 1.0f / p. With YaRN all further steps are in float too:
// keep = 1 - clamp((i - low) / (high - low), 0, 1), 1 / (factor p) (1 - keep) + (1 / p) keep.
std::vector<float> rope_inverse_frequencies(const RopeShape& shape);

// The same in double.
std::vector<double> exact_rope_inverse_frequencies(const RopeShape& shape);

struct RopeTable {
  int64_t positions = 0, half = 0;  // half = head_dim / 2
  std::vector<float> cos, sin;      // [positions, half], times the attention factor (one more rounding in a reference table, none in an exact one)
};

inline constexpr int64_t kMaxPositions = int64_t{1} << 20;  // as far as a table goes

// Positions [0, positions), at most kMaxPositions.
RopeTable make_rope_table(const RopeShape& shape, int64_t positions, RopeTableKind kind);

}  // namespace dz::numerics
