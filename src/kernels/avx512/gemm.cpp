// AVX-512 FMA form, bf16 and f32: packing widens to f32, so both share one kernel.
#include <immintrin.h>

#include "kernels/avx512/few.h"
#include "kernels/avx512/transpose.h"
#include "kernels/gemm_form.h"

namespace dz::kernels::avx512 {
namespace {

// 4 x 32: 16 chains (even and odd) cover the latency of two units, and the 8 accumulators stay in registers over a chunk.
constexpr int64_t kRows = 4, kCols = 32, kPackRows = 16;

DZ_INLINE __m512i load16(const float* p) { return _mm512_loadu_si512(p); }
DZ_INLINE __m512i load16(const uint16_t* p) { return _mm512_slli_epi32(load_halves(p), 16); }

// Panel of A: [k][4 rows].
template <class T>
void pack_a_k(const void* source, int64_t stride, void* panel, int64_t panel_stride) {
  for (int64_t p = 0; p < kPackRows / kRows; ++p) {
    const T* x = static_cast<const T*>(source) + p * kRows * stride;
    uint32_t* out = reinterpret_cast<uint32_t*>(static_cast<char*>(panel) + p * panel_stride);
#pragma GCC unroll 2
    for (int64_t k = 0; k < kGemmBlock; k += 16) {
      __m512i r[4] = {load16(x + k), load16(x + stride + k), load16(x + 2 * stride + k), load16(x + 3 * stride + k)};
      store_4x16(r, out + k * kRows);
    }
  }
}

template <class T>
void pack_a_lanes(const void* source, int64_t stride, void* panel, int64_t panel_stride) {
  const T* x = static_cast<const T*>(source);
  char* out = static_cast<char*>(panel);
  for (int64_t k = 0; k < kGemmBlock; ++k) store_quarters(load16(x + k * stride), out + k * kRows * 4, panel_stride);
}

// Panel of B: [k][32 columns].
template <class T>
void pack_b_k(const void* source, int64_t stride, void* panel, int64_t) {
  for (int64_t half = 0; half < kCols; half += 16) {
    for (int64_t k = 0; k < kGemmBlock; k += 16) {
      const T* x = static_cast<const T*>(source) + half * stride + k;
      __m512i r[4][4];
#pragma GCC unroll 16
      for (int64_t i = 0; i < 16; ++i) r[i / 4][i % 4] = load16(x + i * stride);
      store_16x16(r, static_cast<uint32_t*>(panel) + k * kCols + half, kCols);
    }
  }
}

template <class T>
void pack_b_lanes(const void* source, int64_t stride, void* panel, int64_t) {
  const T* x = static_cast<const T*>(source);
  uint32_t* out = static_cast<uint32_t*>(panel);
  for (int64_t k = 0; k < kGemmBlock; ++k) {
    _mm512_storeu_si512(out + k * kCols, load16(x + k * stride));
    _mm512_storeu_si512(out + k * kCols + 16, load16(x + k * stride + 16));
  }
}

void multiply(const void* a_panels, int64_t panels, const void* b_panel, int64_t blocks, float* tiles, bool fresh) {
  const float* a = static_cast<const float*>(a_panels);
  for (int64_t panel = 0; panel < panels; ++panel, tiles += kRows * kCols) {
    const float* b = static_cast<const float*>(b_panel);
    __m512 sums[4][2];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) sums[i / 2][i % 2] = fresh ? _mm512_setzero_ps() : _mm512_loadu_ps(tiles + 16 * i);
    for (int64_t block = 0; block < blocks; ++block) {
      __m512 even[4][2], odd[4][2];
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) even[i / 2][i % 2] = odd[i / 2][i % 2] = _mm512_setzero_ps();
#pragma GCC unroll 4
      for (int k = 0; k < kGemmBlock; k += 2, a += 2 * kRows, b += 2 * kCols) {
        const __m512 e0 = _mm512_loadu_ps(b), e1 = _mm512_loadu_ps(b + 16), o0 = _mm512_loadu_ps(b + 32), o1 = _mm512_loadu_ps(b + 48);
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
          const __m512 x = _mm512_set1_ps(a[i]), y = _mm512_set1_ps(a[4 + i]);
          even[i][0] = _mm512_fmadd_ps(x, e0, even[i][0]);
          even[i][1] = _mm512_fmadd_ps(x, e1, even[i][1]);
          odd[i][0] = _mm512_fmadd_ps(y, o0, odd[i][0]);
          odd[i][1] = _mm512_fmadd_ps(y, o1, odd[i][1]);
        }
      }
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) sums[i / 2][i % 2] = _mm512_add_ps(sums[i / 2][i % 2], _mm512_add_ps(even[i / 2][i % 2], odd[i / 2][i % 2]));
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) _mm512_storeu_ps(tiles + 16 * i, sums[i / 2][i % 2]);
  }
}

// Few rows, in f32: all k in ascending order, for bf16 widened behind the transposition of pairs, which is half the work.
template <class T>
struct FewWide {
  using Element = T;
  static constexpr int64_t kRowBytes = kGemmBlock * 4;

  DZ_INLINE static void pack_row(const T* x, char* out) {
    _mm512_storeu_si512(out, load16(x));
    _mm512_storeu_si512(out + 64, load16(x + 16));
  }

  // To [32 k][16 columns].
  DZ_INLINE static void transpose(const T* x, int64_t stride, uint32_t* words) {
    constexpr int64_t kWords = static_cast<int64_t>(sizeof(T)) / 2;  // two k of bf16 are a word
#pragma GCC unroll 2
    for (int64_t part = 0; part < kWords; ++part) {
      __m512i r[4][4];
#pragma GCC unroll 16
      for (int64_t i = 0; i < 16; ++i) r[i / 4][i % 4] = _mm512_loadu_si512(x + i * stride + part * 16);
      transpose_16x16(
          r, [&](int i, __m512i row) __attribute__((always_inline)) {
            if constexpr (sizeof(T) == 4) {
              _mm512_store_si512(words + (part * 16 + i) * kFewCols, row);
            } else {
              _mm512_store_si512(words + 2 * i * kFewCols, _mm512_slli_epi32(row, 16));
              _mm512_store_si512(words + (2 * i + 1) * kFewCols, _mm512_and_si512(row, _mm512_set1_epi32(static_cast<int>(0xffff0000))));
            }
          });
    }
  }

  DZ_INLINE static __m512 both_chains(const char* row, const uint32_t* words) {
    const float* x = static_cast<const float*>(static_cast<const void*>(row));
    __m512 even = _mm512_setzero_ps(), odd = _mm512_setzero_ps();
#pragma GCC unroll 16
    for (int64_t k = 0; k < kGemmBlock; k += 2) {
      even = _mm512_fmadd_ps(_mm512_set1_ps(x[k]), _mm512_castsi512_ps(_mm512_load_si512(words + k * kFewCols)), even);
      odd = _mm512_fmadd_ps(_mm512_set1_ps(x[k + 1]), _mm512_castsi512_ps(_mm512_load_si512(words + (k + 1) * kFewCols)), odd);
    }
    return _mm512_add_ps(even, odd);
  }
};

template <class T>
constexpr GemmForm form() {
  return {.rows = kRows,
          .cols = kCols,
          .pack_rows = kPackRows,
          .a_block = kRows * kGemmBlock * 4,
          .b_block = kCols * kGemmBlock * 4,
          .chunk = 4,
          .pack_a_k = pack_a_k<T>,
          .pack_a_lanes = pack_a_lanes<T>,
          .pack_b_k = pack_b_k<T>,
          .pack_b_lanes = pack_b_lanes<T>,
          .multiply = multiply,
          .few = few<FewWide<T>>(),
          .finish = sizeof(T) == 2 ? gemm_finish_bf16 : gemm_finish_f32,
          .keep = gemm_finish_f32};
}

}  // namespace

constinit const GemmForm kGemmBf16 = form<uint16_t>();
constinit const GemmForm kGemmF32 = form<float>();

}  // namespace dz::kernels::avx512
