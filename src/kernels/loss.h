// Cross entropy and z-loss over full rows of f32 logits, forward and backward in one pass over the row (docs/numerics.md, "Head and loss").
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace dz {
class ThreadPool;
}

namespace dz::kernels {

inline constexpr int32_t kMasked = -1;  // a target that takes no part in the loss

// m = exact maximum, s = row sum of exp2((l - m) * log2 e), lse = m + log(s); ce = log(s) - (l[target] - m), z = lse^2;
// p = exp2((l - m) * log2 e) / s; dlogits = round(((p - onehot) + ((2 * z_loss) * lse) * p) * weight). A masked row: ce = z = +0, dlogits = +0.
// The gradient takes the memory of the logits: a row of dlogits begins where the row of logits began, and what the row leaves over holds
// exponentials. So a row of logits is exponentiated once, and logits and gradient of many rows fit where one of them did.
// Unit: a row.
template <class T>
struct CrossEntropy {
  int64_t rows = 0, vocab = 0;
  float* logits = nullptr;           // [rows, vocab]; with `gradient` it is changed
  const int32_t* targets = nullptr;  // [rows], kMasked or < vocab
  float weight = 0;                  // 1 / labels of the global batch
  float z_loss = 0;
  bool gradient = false;
  float* ce = nullptr;  // [rows]
  float* z = nullptr;   // [rows], before the multiplier

  T* dlogits(int64_t row = 0) const { return reinterpret_cast<T*>(logits + row * vocab); }  // [vocab]
  int64_t dlogits_stride() const { return vocab * static_cast<int64_t>(sizeof(float) / sizeof(T)); }
};

template <class T>
void cross_entropy(const CrossEntropy<T>& args, ThreadPool& pool);

}  // namespace dz::kernels
