// The way of a register tile in and out: from the caller's accumulators, and to them or, finished, to its output.
#pragma once

#include "kernels/gemm.h"

namespace dz::kernels {

// tile [rows, cols] <- acc(row.., col..) when accumulating, else +0; +0 past the ends of the product.
template <class T>
void load_tile(const Gemm<T>& product, int64_t row, int64_t col, int64_t rows, int64_t cols, float* tile);

// The part of `tile` that lies inside the product -> acc, or bias, residual and rounding -> out.
template <class T>
void finish_tile(const Gemm<T>& product, int64_t row, int64_t col, int64_t rows, int64_t cols, const float* tile);

}  // namespace dz::kernels
