// The backward pass of a norm over a block of rows, shared by RMSNorm (dy of type T) and QK-norm (dy in f32); rows.h has the formulas. Four rows
// go side by side: that hides the latency of their sums, and the chains of the weight's gradient, which lie in L1, are read and written once for
// four.
#pragma once

#include <cstdint>

#include "kernels/rows.h"
#include "kernels/simd/v16.h"

namespace dz::kernels::DZ_SIMD {

inline constexpr int kNormRows = 4;

template <int rows>
struct Rows {
  static constexpr int count = rows;
};

// dy, x, dx: [rows, width]; rstd: [rows]. dx may be dy. Rows 0, 2 extend the chains at `even`, rows 1, 3 those at `odd`, each [width].
template <class D, class T, int rows>
DZ_INLINE void norm_backward_rows(const D* dy, const T* x, const float* weights, const float* rstd, int64_t width, T* dx, float* even, float* odd) {
  V16 r[rows], dots[rows];
  for (int i = 0; i < rows; ++i) {
    r[i] = splat(rstd[i]);
    dots[i] = zero();
  }
  for_vectors(width, [&](int64_t j, auto lanes) {
    const V16 weight = load(weights + j, lanes);
    V16 chain[2] = {load(even + j, lanes), rows > 1 ? load(odd + j, lanes) : zero()};
    for (int i = 0; i < rows; ++i) {
      // A missing lane stays +0 even if r is inf.
      const V16 n = select_first(lanes, load(x + i * width + j, lanes) * r[i], zero());
      const V16 gradient = load(dy + i * width + j, lanes);
      prefetch(x + (rows + i) * width + j);
      if constexpr (sizeof(D) == sizeof(T)) prefetch(dy + (rows + i) * width + j);
      prefetch(dx + i * width + j);
      dots[i] = fma(gradient * weight, n, dots[i]);
      chain[i % 2] = fma(gradient, n, chain[i % 2]);
    }
    store(even + j, chain[0], lanes);
    if constexpr (rows > 1) store(odd + j, chain[1], lanes);
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

// Walks a block in groups of rows: group(first row of the block, how many as Rows, even, odd). chains: [2, width]. A row that fills up a
// block adds +0 to its chain, which turns a -0 into +0.
template <class Group>
DZ_INLINE void norm_backward_block(int64_t count, int64_t width, float* chains, const Group& group) {
  float* const chain[2] = {chains, chains + width};
  for_vectors(2 * width, [&](int64_t j, auto lanes) { store(chains + j, zero(), lanes); });
  int64_t i = 0;
  for (; i + kNormRows <= count; i += kNormRows) group(i, Rows<kNormRows>{}, chain[0], chain[1]);
  for (; i < count; ++i) group(i, Rows<1>{}, chain[i % 2], chain[1]);
  const int64_t padded = count == kColumnBlock ? 0 : count == kColumnBlock - 1 ? 1 : 2;  // chains that miss rows, the odd one first
  for (int64_t c = 0; c < padded; ++c) {
    for_vectors(width, [&](int64_t j, auto lanes) { store(chain[1 - c] + j, load(chain[1 - c] + j, lanes) + zero(), lanes); });
  }
}

}  // namespace dz::kernels::DZ_SIMD
