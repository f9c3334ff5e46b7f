// The input gradient of a norm over several rows side by side, shared by RMSNorm (dy of type T) and QK-norm (dy in f32); rows.h has the formula.
#pragma once

#include <cstdint>

#include "kernels/simd/v16.h"

namespace dz::kernels::DZ_SIMD {

// dy, x, dx: [rows, width]; rstd: [rows]. dx may be dy.
template <class D, class T, int rows>
DZ_INLINE void norm_input_gradient(const D* dy, const T* x, const float* weights, const float* rstd, int64_t width, T* dx) {
  V16 r[rows], dots[rows];
  for (int i = 0; i < rows; ++i) {
    r[i] = splat(rstd[i]);
    dots[i] = zero();
  }
  for_vectors(width, [&](int64_t j, auto lanes) {
    const V16 weight = load(weights + j, lanes);
    for (int i = 0; i < rows; ++i) {
      // A missing lane stays +0 even if r is inf.
      const V16 n = select_first(lanes, load(x + i * width + j, lanes) * r[i], zero());
      dots[i] = fma(load(dy + i * width + j, lanes) * weight, n, dots[i]);
    }
  });

  for (int i = 0; i < rows; ++i) dots[i] = splat(sum(dots[i]) / static_cast<float>(width));
  for_vectors(width, [&](int64_t j, auto lanes) {
    const V16 weight = load(weights + j, lanes);
    for (int i = 0; i < rows; ++i) {
      const V16 g = load(dy + i * width + j, lanes) * weight;
      const V16 n = load(x + i * width + j, lanes) * r[i];
      store(dx + i * width + j, fma(-n, dots[i], g) * r[i], lanes);
    }
  });
}

}  // namespace dz::kernels::DZ_SIMD
