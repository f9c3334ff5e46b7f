#include "kernels/gemm_tile.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "numerics/rounding.h"

namespace dz::kernels {
namespace {

__m256 load8(const float* p) { return _mm256_loadu_ps(p); }
__m256 load8(const bf16* p) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))), 16));
}

void store8(float* p, __m256 x) { _mm256_storeu_ps(p, x); }

// numerics::to_bf16 on eight lanes.
void store8(bf16* p, __m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff));
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
  const __m256i denormal = _mm256_cmpgt_epi32(_mm256_set1_epi32(0x00800000), magnitude);
  rounded = _mm256_blendv_epi8(rounded, _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(0x8000)), denormal);
  const __m256i nan = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7f800000));
  rounded = _mm256_blendv_epi8(rounded, _mm256_set1_epi32(static_cast<int>(numerics::kCanonicalNan >> 16)), nan);
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(rounded, rounded), 0x08);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(packed));
}

template <class T>
void finish_row(const float* sums, const float* bias, bool add, T* out, int64_t count) {
  int64_t j = 0;
  for (; j + 8 <= count; j += 8) {
    __m256 x = _mm256_loadu_ps(sums + j);
    if (bias != nullptr) x = _mm256_add_ps(x, _mm256_loadu_ps(bias + j));
    if (add) x = _mm256_add_ps(load8(out + j), x);
    store8(out + j, x);
  }
  for (; j < count; ++j) {
    float x = sums[j];
    if (bias != nullptr) x = x + bias[j];
    if (add) x = numerics::to_float(out[j]) + x;
    out[j] = numerics::round_to<T>(x);
  }
}

}  // namespace

template <class T>
void load_tile(const Gemm<T>& product, int64_t row, int64_t col, int64_t rows, int64_t cols, float* tile) {
  const int64_t valid_rows = product.accumulate ? std::min(rows, product.m - row) : 0;
  const int64_t valid_cols = std::min(cols, product.n - col);
  for (int64_t i = 0; i < valid_rows; ++i) {
    std::memcpy(tile + i * cols, product.acc + (row + i) * product.acc_stride + col, static_cast<size_t>(valid_cols) * sizeof(float));
    std::fill(tile + i * cols + valid_cols, tile + (i + 1) * cols, 0.0f);
  }
  std::fill(tile + valid_rows * cols, tile + rows * cols, 0.0f);
}

template <class T>
void finish_tile(const Gemm<T>& product, int64_t row, int64_t col, int64_t rows, int64_t cols, const float* tile) {
  const int64_t valid_rows = std::min(rows, product.m - row);
  const int64_t valid_cols = std::min(cols, product.n - col);
  for (int64_t i = 0; i < valid_rows; ++i) {
    const float* sums = tile + i * cols;
    if (product.out == nullptr) {
      std::memcpy(product.acc + (row + i) * product.acc_stride + col, sums, static_cast<size_t>(valid_cols) * sizeof(float));
    } else {
      const float* bias = product.bias == nullptr ? nullptr : product.bias + col;
      finish_row(sums, bias, product.add_to_out, product.out + (row + i) * product.out_stride + col, valid_cols);
    }
  }
}

template void load_tile(const Gemm<bf16>&, int64_t, int64_t, int64_t, int64_t, float*);
template void load_tile(const Gemm<float>&, int64_t, int64_t, int64_t, int64_t, float*);
template void finish_tile(const Gemm<bf16>&, int64_t, int64_t, int64_t, int64_t, const float*);
template void finish_tile(const Gemm<float>&, int64_t, int64_t, int64_t, int64_t, const float*);

}  // namespace dz::kernels
