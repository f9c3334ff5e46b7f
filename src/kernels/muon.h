// Elementwise ops of the Muon update (docs/numerics.md, "Muon"); its products are GEMMs of kernels/gemm.h. Unit: an element.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace dz {
class ThreadPool;
}

namespace dz::kernels {

// torch's lerp: lerp(a, b, w) = |w| < 1/2 ? fma(w, b - a, a) : fma(w - 1, b - a, b), w - 1 rounded to f32 (ATen/native/Lerp.h, vector form).
//   g = gradient * clip;  m = lerp(m, g, take);  u = nesterov ? lerp(g, m, momentum) : m;  update = u rounded to bf16, kept as f32
struct MuonMomentum {
  int64_t count = 0;
  float clip = 1, take = 0, momentum = 0;  // take = float(1 - momentum)
  bool nesterov = true;
  const float* gradient = nullptr;
  float* m = nullptr;
  float* update = nullptr;
};

// out[i] = to_bf16(x[i] / norm).
struct MuonNormalize {
  int64_t count = 0;
  float norm = 1;
  const float* x = nullptr;
  bf16* out = nullptr;
};

// out[i] = to_bf16(x_scale * x[i] + acc_scale * acc[i]): two products, one sum, one rounding to bf16. out may be x.
struct MuonCombine {
  int64_t count = 0;
  float x_scale = 1, acc_scale = 1;
  const bf16* x = nullptr;
  const float* acc = nullptr;
  bf16* out = nullptr;
};

// p[i] = fma(step, x[i], p[i] * decay), the product p * decay rounded first.
struct MuonApply {
  int64_t count = 0;
  float decay = 1, step = 0;
  const bf16* x = nullptr;
  float* p = nullptr;
};

void muon_momentum(const MuonMomentum& args, ThreadPool& pool);
void muon_normalize(const MuonNormalize& args, ThreadPool& pool);
void muon_combine(const MuonCombine& args, ThreadPool& pool);
void muon_apply(const MuonApply& args, ThreadPool& pool);

}  // namespace dz::kernels
