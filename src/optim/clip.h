// The global gradient norm and the clip coefficient (docs/numerics.md, "Gradient norm" and "Clip").
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace dz {
class ThreadPool;
}

namespace dz::optim {

struct GradientView {
  std::string name;
  int64_t count = 0;
  const float* data = nullptr;
};

// Square root of the sum of squares of all tensors: squares in double, blocks of 4,096 by the row rule, a tree over the blocks of a tensor,
// then a tree over the tensors, which must be in name order (byte order); one rounding to f32. NaN or inf when a gradient is.
float global_norm(std::span<const GradientView> gradients, ThreadPool& pool);

// (1 / (norm + 1e-6)) * max_norm in f32, at most 1. max_norm <= 0: 1, no clipping.
float clip_coefficient(float norm, float max_norm);

}  // namespace dz::optim
