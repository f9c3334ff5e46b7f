// Ops on f32 state: lane merge, casts, gradient norm, AdamW. Unit: an element, or a block of kNormBlock elements for the norm.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace dz {
class ThreadPool;
}

namespace dz::kernels {

inline constexpr int64_t kNormBlock = 4096;

// a[i] = a[i] + b[i]: one node of the lane tree, a being the lower lanes. With `more`, the nodes that the last of its terms completes, in one
// reading of each: a[i] = a[i] + (b[i] + (more[0][i] + (more[1][i] + ...))).
struct Add {
  int64_t count = 0;
  float* a = nullptr;
  const float* b = nullptr;
  const float* const* more = nullptr;
  int64_t more_count = 0;
};

// out[i] = to_bf16(x[i]): the weights of a step.
struct CastToBf16 {
  int64_t count = 0;
  const float* x = nullptr;
  bf16* out = nullptr;
};

// sums[b] = sum of squares in double of block b (kNormBlock elements) by the row rule: 16 lanes, fma, tree.
struct SquaredNorms {
  int64_t count = 0;
  const float* x = nullptr;
  double* sums = nullptr;  // [ceil(count / kNormBlock)]
};

// One AdamW update in the order of OLMo-core's foreach form, each operation rounded, no fma:
//   g = gradient * clip; p = p * decay; m = m * m_keep + g * m_take; v = v * v_keep + (g * g) * v_take;
//   d = sqrt(v) / sqrt_bc2 + eps; p = p + (m / d) * step          (step = -(1 / bc1) * float(lr))
// `single`, its form for one tensor at a time, has other moments, fma(w, b - a, a) being torch's lerp for a weight below 1/2 (muon.h):
//   m = lerp(m, g, m_take); v = fma(g * g, v_take, v * v_keep)
struct AdamW {
  int64_t count = 0;
  bool single = false;
  float clip = 1, decay = 1, m_keep = 0, m_take = 0, v_keep = 0, v_take = 0, sqrt_bc2 = 1, eps = 0, step = 0;
  const float* gradient = nullptr;
  float* p = nullptr;
  float* m = nullptr;
  float* v = nullptr;
};

void add(const Add& args, ThreadPool& pool);
void cast_to_bf16(const CastToBf16& args, ThreadPool& pool);
void squared_norms(const SquaredNorms& args, ThreadPool& pool);
void adamw(const AdamW& args, ThreadPool& pool);

}  // namespace dz::kernels
