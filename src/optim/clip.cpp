#include "optim/clip.h"

#include <vector>

#include "base/check.h"
#include "kernels/state.h"
#include "numerics/sums.h"

namespace dz::optim {

float global_norm(std::span<const GradientView> gradients, ThreadPool& pool) {
  std::vector<double> tensors, blocks;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const GradientView& gradient = gradients[i];
    DZ_CHECK(i == 0 || gradients[i - 1].name < gradient.name, "tensor", gradient.name, "after", i == 0 ? "" : gradients[i - 1].name);
    blocks.assign(static_cast<size_t>((gradient.count + kernels::kNormBlock - 1) / kernels::kNormBlock), 0.0);
    kernels::squared_norms({.count = gradient.count, .x = gradient.data, .sums = blocks.data()}, pool);
    tensors.push_back(numerics::tree_sum<double>(blocks));
  }
  return static_cast<float>(__builtin_sqrt(numerics::tree_sum<double>(tensors)));
}

float clip_coefficient(float norm, float max_norm) {
  if (max_norm <= 0) return 1.0f;
  // torch turns max_norm / tensor into a reciprocal and a product.
  const float coefficient = (1.0f / (norm + 1e-6f)) * max_norm;
  return coefficient > 1.0f ? 1.0f : coefficient;
}

}  // namespace dz::optim
