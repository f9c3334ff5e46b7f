// Few rows of A in AVX-512: 16 columns of B are transposed block by block into L1, where every row of A walks both chains over them.
// A form brings `Kind`: how a 32-block of one row of A is packed, how one of 16 columns of B is transposed, and the sum of both chains of a block.
// Internal linkage: included by several instruction sets.
#pragma once

#include <immintrin.h>

#include "kernels/avx512/transpose.h"
#include "kernels/gemm_form.h"

namespace dz::kernels {
namespace {

// 16 columns: more streams than that are more than the prefetchers follow, and the transposed block (1 or 2 KiB) stays in L1.
constexpr int64_t kFewRows = 16, kFewCols = 16;

template <class Kind>
void few_pack(const void* source, int64_t stride, int64_t rows, int64_t blocks, const void* edge, void* packed) {
  using T = typename Kind::Element;
  char* out = static_cast<char*>(packed);
  for (int64_t block = 0; block < blocks; ++block) {
    const T* x = static_cast<const T*>(source) + block * kGemmBlock;
    for (int64_t row = 0; row < rows; ++row, out += Kind::kRowBytes) Kind::pack_row(x + row * stride, out);
  }
  if (edge == nullptr) return;
  for (int64_t row = 0; row < rows; ++row, out += Kind::kRowBytes) Kind::pack_row(static_cast<const T*>(edge) + row * kGemmBlock, out);
}

template <class Kind>
void few_multiply(const void* packed, int64_t rows, const void* b, int64_t stride, int64_t blocks, const void* edge, const char* ahead, float* tile) {
  using T = typename Kind::Element;
  constexpr int64_t kLines = kFewCols * kGemmBlock * static_cast<int64_t>(sizeof(T)) / 64;
  const T* columns = static_cast<const T*>(b);
  const char* x = static_cast<const char*>(packed);
  for (int64_t row = 0; row < rows; ++row) _mm512_store_ps(tile + row * kFewCols, _mm512_setzero_ps());
  const auto add_block = [&](const T* from, int64_t from_stride) __attribute__((always_inline)) {
    alignas(64) uint32_t words[Kind::kRowBytes / 4 * kFewCols];
    Kind::transpose(from, from_stride, words);
    for (int64_t row = 0; row < rows; ++row, x += Kind::kRowBytes) {
      float* sum = tile + row * kFewCols;
      _mm512_store_ps(sum, _mm512_add_ps(_mm512_load_ps(sum), Kind::both_chains(x, words)));
    }
  };
  for (int64_t block = 0; block < blocks; ++block) {
    if (ahead != nullptr) {
#pragma GCC unroll 32
      for (int64_t line = 0; line < kLines; ++line) _mm_prefetch(ahead + (block * kLines + line) * 64, _MM_HINT_T1);
    }
    add_block(columns + block * kGemmBlock, stride);
  }
  if (edge != nullptr) add_block(static_cast<const T*>(edge), kGemmBlock);
}

template <class Kind>
constexpr GemmFew few() {
  return {.rows = kFewRows, .cols = kFewCols, .row_bytes = Kind::kRowBytes, .pack = few_pack<Kind>, .multiply = few_multiply<Kind>};
}

}  // namespace
}  // namespace dz::kernels
