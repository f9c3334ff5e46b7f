// The products of attention's tiles as TDPBF16PS, and the packing of their operands. Blocks of 32 k are the contract's blocks (amx/gemm.cpp), so
// an operand is padded with +0 to whole blocks and no further.
//
// Scores are made transposed, S^T = K Q^T: [key][query]. Then a register holds sixteen queries of one key, the maximum and the sum of a row run
// from register to register, and the rounded weights are the next product's operand as they are: rows of queries are an A operand (dV, dK), and
// two keys woven together are a B operand (O^T = V^T P^T, dQ^T = K^T dS^T). Nothing is transposed inside the loop over tiles.
#pragma once

#include "kernels/amx/tiles.h"
#include "kernels/attention.h"
#include "kernels/avx512/transpose.h"
#include "kernels/simd/functions.h"

namespace dz::kernels::amx {
namespace {

constexpr int64_t kTile = kAttentionTile;  // queries or keys
constexpr int64_t kBlock = 32;             // the contract's block of k, and the edge of a product's register block

DZ_INLINE int64_t padded(int64_t size) { return (size + kBlock - 1) / kBlock * kBlock; }

// C, 32 x 32 floats, = (add ? C : +0) + A B over `blocks` blocks of k. A: 32 rows of k, 64 bytes a block. B: 16 rows of pairs of k a block, two
// sets of sixteen columns `b_next` bytes apart. 2 x 2 tiles give four products for four operand loads, and leave room for the operands.
struct TileProduct {
  const void* a = nullptr;
  int64_t a_stride = 0;  // bytes from row to row
  const void* b = nullptr;
  int64_t b_stride = 0, b_next = 0, b_block = 0;  // bytes from row to row, to the next sixteen columns, to the next block
  float* c = nullptr;
  int64_t c_stride = 0;  // bytes
  int64_t blocks = 0;
  bool add = false;
};

DZ_INLINE void multiply(const TileProduct& p) {
  const char *a = static_cast<const char*>(p.a), *b = static_cast<const char*>(p.b);
  char* c = reinterpret_cast<char*>(p.c);
  char* lower = c + 16 * p.c_stride;
  finish_stores();
  if (p.add) {
    _tile_loadd(0, c, p.c_stride);
    _tile_loadd(1, c + 64, p.c_stride);
    _tile_loadd(2, lower, p.c_stride);
    _tile_loadd(3, lower + 64, p.c_stride);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t block = 0; block < p.blocks; ++block, a += 64, b += p.b_block) {
    _tile_loadd(4, a, p.a_stride);
    _tile_loadd(6, b, p.b_stride);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + p.b_next, p.b_stride);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a + 16 * p.a_stride, p.a_stride);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, c, p.c_stride);
  _tile_stored(1, c + 64, p.c_stride);
  _tile_stored(2, lower, p.c_stride);
  _tile_stored(3, lower + 64, p.c_stride);
  finish_stores();
}

// `rows` rows of `size` elements into [64][wide] with +0 around.
DZ_INLINE void pack_rows(const bf16* from, int64_t stride, int64_t rows, int64_t size, uint16_t* to) {
  const int64_t wide = padded(size);
  for (int64_t i = 0; i < kTile; ++i) {
    for (int64_t j = 0; j < wide; j += kBlock) {
      const int64_t count = i < rows ? (size - j < kBlock ? size - j : kBlock) : 0;
      const auto exist = static_cast<__mmask32>(count == kBlock ? 0xffffffffu : (1u << (count > 0 ? count : 0)) - 1u);
      const __m512i x = count > 0 ? _mm512_maskz_loadu_epi16(exist, from + i * stride + j) : _mm512_setzero_si512();
      _mm512_storeu_si512(to + i * wide + j, x);
    }
  }
}

// For two rows of 32 elements: word i of `low` holds element i of both, word i of `high` element 16 + i; the first row in the lower half.
DZ_INLINE void weave(__m512i first, __m512i second, void* low, void* high) {
  alignas(64) static constexpr uint16_t kLow[32] = {0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
                                                    8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
  const __m512i low_order = _mm512_load_si512(kLow);
  _mm512_storeu_si512(low, _mm512_permutex2var_epi16(first, low_order, second));
  _mm512_storeu_si512(high, _mm512_permutex2var_epi16(first, _mm512_add_epi16(low_order, _mm512_set1_epi16(16)), second));
}

// 32 numbers, rounded.
DZ_INLINE __m512i round_row(V16 low, V16 high) {
#ifdef __AVX512BF16__
  return (__m512i)_mm512_cvtne2ps_pbh(high.v, low.v);
#else
  return _mm512_inserti64x4(_mm512_castsi256_si512(narrow(low)), narrow(high), 1);
#endif
}

// Sixteen numbers of two keys, rounded, as pairs: the first key in the lower halves.
DZ_INLINE void store_pairs(uint32_t* to, V16 first, V16 second) {
  alignas(64) static constexpr uint16_t kOrder[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                      8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  _mm512_storeu_si512(to, _mm512_permutexvar_epi16(_mm512_load_si512(kOrder), round_row(first, second)));
}

// [64][wide] rows into [32 pairs of rows][wide] words: a B operand whose k are the rows.
DZ_INLINE void pair_rows(const uint16_t* rows, int64_t wide, uint32_t* to) {
  for (int64_t i = 0; i < kTile; i += 2) {
    for (int64_t j = 0; j < wide; j += kBlock) {
      uint32_t* words = to + i / 2 * wide + j;
      weave(_mm512_loadu_si512(rows + i * wide + j), _mm512_loadu_si512(rows + (i + 1) * wide + j), words, words + 16);
    }
  }
}

// from[rows][columns] words into to[columns][rows]; both are multiples of 16.
DZ_INLINE void transpose_operand(const uint32_t* from, int64_t rows, int64_t columns, uint32_t* to) {
  for (int64_t i = 0; i < rows; i += 16) {
    for (int64_t j = 0; j < columns; j += 16) {
      __m512i r[4][4];
#pragma GCC unroll 16
      for (int64_t row = 0; row < 16; ++row) r[row / 4][row % 4] = _mm512_loadu_si512(from + (i + row) * columns + j);
      store_16x16(r, to + j * rows + i, rows);
    }
  }
}

// 2^x for x <= 0, -inf and NaN, the bits of numerics::exp2. VREDUCEPS gives x - round(x) and VSCALEFPS adds the exponent in one operation each;
// from -127 on the result is below the normal numbers and flushed to +0.
DZ_INLINE V16 exp2_by_parts(V16 x) {
  const V16 y = raise(x, splat(-127.0f));  // a NaN stays
  const V16 f = {_mm512_reduce_ps(y.v, 8)};
  return {_mm512_scalef_ps(exp2_polynomial(f).v, (y - f).v)};
}

}  // namespace
}  // namespace dz::kernels::amx
