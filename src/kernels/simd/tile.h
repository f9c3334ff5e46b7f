// Small products on stack scratch for attention, in the order of the matrix product (kernels/gemm.h), and the moves that feed them.
//
// A tile is a row-major float array whose row length is a multiple of 32 ("padded"): what lies past the end of a head or of an instance is +0,
// so that the blocks of 32 need no tails.
#pragma once

#include "kernels/simd/v16.h"

namespace dz::kernels::DZ_SIMD {

inline constexpr int64_t kTile = 64;  // kAttentionTile; queries or keys
inline constexpr int64_t kKBlock = 32;

DZ_INLINE int64_t padded(int64_t size) { return (size + kKBlock - 1) / kKBlock * kKBlock; }

// The left operand: element (i, k) is at data[i * stride + k], or at data[k * stride + i] when transposed.
template <bool transposed>
struct Left {
  const float* data;
  int64_t stride;
  DZ_INLINE V16 at(int64_t i, int64_t k) const { return splat(transposed ? data[k * stride + i] : data[i * stride + k]); }
};

// kRows x kVectors accumulators of one chain stay in registers; the finished even chain waits while the odd one runs.
template <int kRows, int kVectors, bool transposed>
DZ_INLINE void product_block(Left<transposed> a, int64_t i, int64_t k_blocks, const float* b, int64_t b_stride, float* c, int64_t c_stride,
                             bool accumulate) {
  for (int64_t block = 0; block < k_blocks; ++block) {
    V16 chain[2][kRows][kVectors];
#pragma GCC unroll 2
    for (int parity = 0; parity < 2; ++parity) {
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) chain[parity][r][v] = zero();
      }
#pragma GCC unroll 2
      for (int64_t k = block * kKBlock + parity; k < (block + 1) * kKBlock; k += 2) {
        V16 right[kVectors];
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) right[v] = load(b + k * b_stride + v * kLanes);
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
          const V16 left = a.at(i + r, k);
#pragma GCC unroll 4
          for (int v = 0; v < kVectors; ++v) chain[parity][r][v] = fma(left, right[v], chain[parity][r][v]);
        }
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        float* to = c + r * c_stride + v * kLanes;
        const V16 before = block > 0 || accumulate ? load(to) : zero();
        store(to, before + (chain[0][r][v] + chain[1][r][v]));
      }
    }
  }
}

// c[i, j] = (accumulate ? c[i, j] : +0) + sum over k in the contract's order; rows is rounded up to a multiple of 4 (those rows must exist),
// k and columns are multiples of 32.
template <bool transposed>
void product(Left<transposed> a, const float* b, int64_t b_stride, float* c, int64_t c_stride, int64_t rows, int64_t columns, int64_t k,
             bool accumulate) {
  // AVX-512 has 32 registers: 16 for a chain. AVX2 has 16: one vector here is two of them.
#ifdef __AVX512F__
  constexpr int kVectors = 4, kRest = 2;
#else
  constexpr int kVectors = 1, kRest = 1;
#endif
  constexpr int kRows = 4;
  int64_t j = 0;
  for (; j + kVectors * kLanes <= columns; j += kVectors * kLanes) {
    for (int64_t i = 0; i < rows; i += kRows) {
      product_block<kRows, kVectors>(a, i, k / kKBlock, b + j, b_stride, c + i * c_stride + j, c_stride, accumulate);
    }
  }
  for (; j < columns; j += kRest * kLanes) {
    for (int64_t i = 0; i < rows; i += kRows) {
      product_block<kRows, kRest>(a, i, k / kKBlock, b + j, b_stride, c + i * c_stride + j, c_stride, accumulate);
    }
  }
}

DZ_INLINE void clear(float* p, int64_t count) { __builtin_memset(p, 0, static_cast<size_t>(count) * sizeof(float)); }

// The first `rows` rows of `size` elements, widened, into a tile of padded(size) columns; +0 to the right of them and in the rows up to `all_rows`.
template <class T>
DZ_INLINE void widen_rows(const T* from, int64_t stride, int64_t rows, int64_t size, int64_t all_rows, float* to) {
  const int64_t width = padded(size);
  for (int64_t i = 0; i < rows; ++i) {
    float* row = to + i * width;
    for_vectors(size, [&](int64_t j, auto lanes) { store(row + j, load(from + i * stride + j, lanes)); });
    for (int64_t j = (size + kLanes - 1) / kLanes * kLanes; j < width; j += kLanes) store(row + j, zero());
  }
  clear(to + rows * width, (all_rows - rows) * width);
}

// to[j][i] = from[i][j] for an 8 x 8 block.
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

// A tile of 64 rows and `width` columns into one of `width` rows and 64 columns.
DZ_INLINE void transpose(const float* from, int64_t width, float* to) {
  for (int64_t j = 0; j < width; j += 8) {
    for (int64_t i = 0; i < kTile; i += 8) transpose_8x8(from + i * width + j, width, to + j * kTile + i, kTile);
  }
}

}  // namespace dz::kernels::DZ_SIMD
