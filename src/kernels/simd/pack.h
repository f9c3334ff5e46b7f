// Moves values from memory into the tiles of tile.h: widening or pairing, padding with +0, transposing.
#pragma once

#include "kernels/simd/tile.h"

namespace dz::kernels::DZ_SIMD {

template <class Element>
DZ_INLINE void clear(Element* p, int64_t count) {
  __builtin_memset(p, 0, static_cast<size_t>(count) * sizeof(Element));
}

// `rows` rows of `size` elements, widened, into [64][padded(size)] floats.
template <class T>
DZ_INLINE void pack_left(const T* from, int64_t stride, int64_t rows, int64_t size, float* to) {
  const int64_t wide = padded(size);
  for (int64_t i = 0; i < rows; ++i) {
    float* row = to + i * wide;
    for_vectors(size, [&](int64_t j, auto lanes) { store(row + j, load(from + i * stride + j, lanes)); });
    for (int64_t j = (size + kLanes - 1) / kLanes * kLanes; j < wide; j += kLanes) store(row + j, zero());
  }
  clear(to + rows * wide, (kTile - rows) * wide);
}

// Where the `right` layout of a tile is that was packed as `left` already: for floats in the same place.
template <class T>
DZ_INLINE const float* pack_right_too(const T*, int64_t, int64_t, int64_t, const float* left, float*) {
  return left;
}

template <class T>
DZ_INLINE void pack_right(const T* from, int64_t stride, int64_t rows, int64_t size, float* to) {
  pack_left(from, stride, rows, size, to);
}

// Sixteen rounded numbers of row i of a `left` tile of 64 x 64, from element 16 v on.
template <class T>
DZ_INLINE void store_left(float* to, int64_t i, int64_t v, V16 x) {
  store(to + i * kTile + v * kLanes, round_as<T>(x));
}

#ifdef __AVX512BF16__

// Of each four elements the pairs (0, 2) and (1, 3), the first of a pair in the upper half.
DZ_INLINE void store_pairs(Pair* to, __m256i halves) {
  const __m256i order = _mm256_broadcastsi128_si256(_mm_setr_epi8(4, 5, 0, 1, 6, 7, 2, 3, 12, 13, 8, 9, 14, 15, 10, 11));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_shuffle_epi8(halves, order));
}

template <class T>
DZ_INLINE void store_left(Pair* to, int64_t i, int64_t v, V16 x) {
  store_pairs(to + (i * kTile + v * kLanes) / 2, narrow(x));
}

DZ_INLINE void pack_left(const bf16* from, int64_t stride, int64_t rows, int64_t size, Pair* to) {
  const int64_t words = padded(size) / 2;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < padded(size); j += kLanes) {
      const int64_t left = size - j < 0 ? 0 : size - j;
      const __mmask16 exist = bits_of(First{left < kLanes ? left : kLanes});
      store_pairs(to + i * words + j / 2, _mm256_maskz_loadu_epi16(exist, from + i * stride + j));
    }
  }
  clear(to + rows * words, (kTile - rows) * words);
}

// Of each four rows the pairs (0, 2) and (1, 3) of every column.
DZ_INLINE void pack_right(const bf16* from, int64_t stride, int64_t rows, int64_t size, Pair* to) {
  const int64_t wide = padded(size);
  for (int64_t i = 0; i < kTile; i += 4) {
    for (int64_t j = 0; j < wide; j += kLanes) {
      const int64_t left = size - j < 0 ? 0 : size - j;
      __m512i row[4];
      for (int64_t r = 0; r < 4; ++r) {
        const First lanes{i + r < rows ? (left < kLanes ? left : kLanes) : 0};
        row[r] = _mm512_castps_si512(load(from + (lanes.count > 0 ? (i + r) * stride + j : 0), lanes).v);
      }
      for (int64_t parity = 0; parity < 2; ++parity) {
        _mm512_storeu_si512(to + (i / 2 + parity) * wide + j, _mm512_or_si512(row[parity], _mm512_srli_epi32(row[parity + 2], 16)));
      }
    }
  }
}

DZ_INLINE const Pair* pack_right_too(const bf16* from, int64_t stride, int64_t rows, int64_t size, const Pair*, Pair* to) {
  pack_right(from, stride, rows, size, to);
  return to;
}

#endif

// to[j][i] = from[i][j] for an 8 x 8 block of words.
DZ_INLINE void transpose_8x8(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  __m256 a[8], b[8];
  for (int i = 0; i < 8; ++i) a[i] = _mm256_loadu_ps(from + i * from_stride);
  for (int i = 0; i < 8; i += 2) {
    b[i] = _mm256_unpacklo_ps(a[i], a[i + 1]);
    b[i + 1] = _mm256_unpackhi_ps(a[i], a[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    a[i] = _mm256_shuffle_ps(b[i], b[i + 2], 0x44);
    a[i + 1] = _mm256_shuffle_ps(b[i], b[i + 2], 0xee);
    a[i + 2] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0x44);
    a[i + 3] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(to + i * to_stride, _mm256_permute2f128_ps(a[i], a[i + 4], 0x20));
    _mm256_storeu_ps(to + (i + 4) * to_stride, _mm256_permute2f128_ps(a[i], a[i + 4], 0x31));
  }
}

// A `left` tile into its `columns` layout. Words are only moved, so their type does not matter.
template <class Word>
DZ_INLINE void transpose(const Word* from, int64_t size, Word* to) {
  const int64_t words = padded(size) / k_per_word<Word>();
  const float* in = reinterpret_cast<const float*>(from);
  float* out = reinterpret_cast<float*>(to);
  for (int64_t j = 0; j < words; j += 8) {
    for (int64_t i = 0; i < kTile; i += 8) transpose_8x8(in + i * words + j, words, out + j * kTile + i, kTile);
  }
}

}  // namespace dz::kernels::DZ_SIMD
