// The table of cosines and sines for rotary position embeddings (default type; docs/numerics.md, "RoPE table").
#pragma once

#include <cstdint>
#include <vector>

namespace dz::numerics {

// kReference is what the Python implementations do: the angle is float position times float inverse frequency, rounded to float.
// kExact takes the angle in double. The recipe's key is recipe.rope.table.
enum class RopeTableKind : uint8_t { kReference, kExact };

struct RopeTable {
  int64_t positions = 0, half = 0;  // half = head_dim / 2
  std::vector<float> cos, sin;      // [positions, half]
};

// 1 / theta^(2i / head_dim) for i < head_dim / 2, with the roundings of the references: x = float(2i) / float(head_dim),
// p = float(pow(double(theta), double(x))), 1.0f / p. head_dim is even and positive, theta positive.
std::vector<float> rope_inverse_frequencies(int64_t head_dim, double theta);

// Positions [0, positions), at most 2^20.
RopeTable make_rope_table(int64_t head_dim, double theta, int64_t positions, RopeTableKind kind);

}  // namespace dz::numerics
