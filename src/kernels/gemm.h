// Matrix product in the contract's order (docs/numerics.md, "GEMM"), with f32 accumulators.
//
//   acc[i, j] = (accumulate ? acc[i, j] : +0), then for each K block of 32 ascending: e = fma chain over even k from +0, o = the same over odd
//   k, acc = acc + (e + o). A block that ends early is extended with +0 on both operands. K is never split over threads.
//
// T is bf16 or float. Strides are in elements and may describe a transposed operand; one stride of each operand is 1.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace dz {
class ThreadPool;
}

namespace dz::kernels {

template <class T>
struct Gemm {
  int64_t m = 0, n = 0, k = 0;
  const T* a = nullptr;  // element (i, k) at a[i * a_row + k * a_col]
  int64_t a_row = 0, a_col = 1;
  const T* b = nullptr;  // element (k, j) at b[k * b_row + j * b_col]
  int64_t b_row = 1, b_col = 0;
  int64_t k_segment = 0;  // 32-blocks restart at every multiple of it (the tokens of an instance); 0: one segment

  float* acc = nullptr;  // [m, n] f32, needed when accumulating or when there is no `out`
  int64_t acc_stride = 0;
  bool accumulate = false;
  bool join = false;  // without `accumulate` and `out`: acc[i, j] = what it was + the sum above, one node of the lane tree

  T* out = nullptr;  // when set: out[i, j] = round((add_to_out ? float(out[i, j]) : nothing) + (acc + bias[j])); acc is scratch then
  int64_t out_stride = 0;
  const float* bias = nullptr;  // [n], added to the finished accumulator before anything else
  bool add_to_out = false;      // a dX that joins the residual gradient: float(out) + accumulator, one rounding
};

template <class T>
void gemm(const Gemm<T>& product, ThreadPool& pool);

// The same on the calling thread, for products inside a task of another op.
template <class T>
void gemm_serial(const Gemm<T>& product);

}  // namespace dz::kernels
