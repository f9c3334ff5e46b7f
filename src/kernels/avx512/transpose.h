// Transposition of 32-bit words in 512-bit registers, for packing. Internal linkage: included by several instruction sets.
#pragma once

#include <immintrin.h>

#include "numerics/rounding.h"

namespace dz::kernels {
namespace {

// Inside each 128-bit lane l: word j of r[i] becomes word i of r[j]. So r[j] holds, for k = j, j + 4, j + 8, j + 12, the four rows.
DZ_INLINE void transpose_words(__m512i (&r)[4]) {
  const __m512i low01 = _mm512_unpacklo_epi32(r[0], r[1]);
  const __m512i high01 = _mm512_unpackhi_epi32(r[0], r[1]);
  const __m512i low23 = _mm512_unpacklo_epi32(r[2], r[3]);
  const __m512i high23 = _mm512_unpackhi_epi32(r[2], r[3]);
  r[0] = _mm512_unpacklo_epi64(low01, low23);
  r[1] = _mm512_unpackhi_epi64(low01, low23);
  r[2] = _mm512_unpacklo_epi64(high01, high23);
  r[3] = _mm512_unpackhi_epi64(high01, high23);
}

// Lane l of r[i] becomes lane i of r[l].
DZ_INLINE void transpose_lanes(__m512i& r0, __m512i& r1, __m512i& r2, __m512i& r3) {
  const __m512i low01 = _mm512_shuffle_i32x4(r0, r1, 0x44);
  const __m512i high01 = _mm512_shuffle_i32x4(r0, r1, 0xee);
  const __m512i low23 = _mm512_shuffle_i32x4(r2, r3, 0x44);
  const __m512i high23 = _mm512_shuffle_i32x4(r2, r3, 0xee);
  r0 = _mm512_shuffle_i32x4(low01, low23, 0x88);
  r1 = _mm512_shuffle_i32x4(low01, low23, 0xdd);
  r2 = _mm512_shuffle_i32x4(high01, high23, 0x88);
  r3 = _mm512_shuffle_i32x4(high01, high23, 0xdd);
}

// Four rows of 16 words to [16][4] words at `out`.
DZ_INLINE void store_4x16(__m512i (&r)[4], uint32_t* out) {
  transpose_words(r);
  transpose_lanes(r[0], r[1], r[2], r[3]);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) _mm512_storeu_si512(out + 16 * i, r[i]);
}

// 16 rows of 16 words; use(i, row) takes row i of the result.
template <class Use>
DZ_INLINE void transpose_16x16(__m512i (&r)[4][4], Use use) {
#pragma GCC unroll 4
  for (int group = 0; group < 4; ++group) transpose_words(r[group]);
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    transpose_lanes(r[0][j], r[1][j], r[2][j], r[3][j]);
#pragma GCC unroll 4
    for (int l = 0; l < 4; ++l) use(4 * l + j, r[l][j]);
  }
}

// The same, row i of the result to out + i * stride.
DZ_INLINE void store_16x16(__m512i (&r)[4][4], uint32_t* out, int64_t stride) {
  transpose_16x16(
      r, [&](int i, __m512i row) __attribute__((always_inline)) { _mm512_storeu_si512(out + i * stride, row); });
}

// The 16 words of x to four panels of four rows each.
DZ_INLINE void store_quarters(__m512i x, char* panel, int64_t panel_stride) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(panel), _mm512_castsi512_si128(x));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(panel + panel_stride), _mm512_extracti32x4_epi32(x, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(panel + 2 * panel_stride), _mm512_extracti32x4_epi32(x, 2));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(panel + 3 * panel_stride), _mm512_extracti32x4_epi32(x, 3));
}

// 16 elements of 16 bits, each in the low half of a word.
DZ_INLINE __m512i load_halves(const uint16_t* p) { return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }

}  // namespace
}  // namespace dz::kernels
