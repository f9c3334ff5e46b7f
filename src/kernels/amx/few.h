// Few rows of A over AMX tiles. Rows of a weight are a left operand as they lie in memory, so the product is made transposed, weight * x': its
// tile is [16 columns][16 rows], x' the right operand. Internal linkage.
#pragma once

#include "kernels/amx/tiles.h"
#include "kernels/avx512/transpose.h"
#include "kernels/gemm_form.h"

namespace dz::kernels::amx {
namespace {

// 16 rows of the weight are one tile. Two tiles at once would load each tile of x' once for both, but 32 rows are more streams than the
// prefetchers follow: 11% slower on average, four tiles a third.
constexpr int64_t kFewRows = 16, kFewCols = 16, kFewTile = 1024;

// 32-blocks of x' as tiles [16 pairs of k][16 rows of x], rows that do not exist +0.
void few_pack(const void* source, int64_t stride, int64_t rows, int64_t blocks, const void* edge, void* packed) {
  const int64_t all = blocks + (edge != nullptr ? 1 : 0);
  __builtin_memset(packed, 0, static_cast<unsigned long>(all * kFewTile));
  for (int64_t row = 0; row < rows; ++row) {
    const char* x = static_cast<const char*>(source) + row * stride * 2;
    char* out = static_cast<char*>(packed) + row * 4;
    for (int64_t block = 0; block < all; ++block) {
      const char* from = block < blocks ? x + block * 64 : static_cast<const char*>(edge) + row * 64;
      for (int64_t pair = 0; pair < 16; ++pair, out += 64) __builtin_memcpy(out, from + pair * 4, 4);
    }
  }
}

void few_multiply(const void* packed, int64_t rows, const void* b, int64_t stride, int64_t blocks, const void* edge, const char* ahead, float* tile) {
  const char* x = static_cast<const char*>(packed);
  const char* weight = static_cast<const char*>(b);
  finish_stores();
  _tile_zero(0);
  for (int64_t block = 0; block < blocks; ++block, x += kFewTile, weight += 64) {
    if (ahead != nullptr) {
#pragma GCC unroll 16
      for (int64_t line = 0; line < kFewCols; ++line) _mm_prefetch(ahead + (block * kFewCols + line) * 64, _MM_HINT_T1);
    }
    _tile_loadd(4, x, 64);
    _tile_loadd(6, weight, stride * 2);
    _tile_dpbf16ps(0, 6, 4);
  }
  if (edge != nullptr) {
    _tile_loadd(4, x, 64);
    _tile_loadd(6, edge, 64);
    _tile_dpbf16ps(0, 6, 4);
  }
  alignas(64) float sums[kFewCols * 16];
  _tile_stored(0, sums, 64);
  finish_stores();
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t col = 0; col < kFewCols; ++col) tile[row * kFewCols + col] = sums[col * 16 + row];
  }
}

constexpr GemmFew kFew = {.rows = kFewRows, .cols = kFewCols, .row_bytes = kFewTile / kFewRows, .pack = few_pack, .multiply = few_multiply};

}  // namespace
}  // namespace dz::kernels::amx
