// AVX2 FMA form, bf16 and f32: packing widens to f32, so both share one kernel.
#include <immintrin.h>

#include "kernels/gemm_form.h"
#include "numerics/rounding.h"

namespace dz::kernels::avx2 {
namespace {

// 4 x 16: 8 chains cover a latency of 4 cycles of two units (measured on Zen 4: 94% of peak; 4 x 24 and 3 x 16 with both chains gave 88 to
// 93%). 16 registers hold no second set of chains, so a 32-block runs its even k first, then its odd k, and is packed in that order.
constexpr int64_t kRows = 4, kCols = 16, kVectors = kCols / 8, kPackRows = 16, kHalf = kGemmBlock / 2;

DZ_INLINE constexpr int64_t place(int64_t k) { return k % 2 * kHalf + k / 2; }

DZ_INLINE float* offset(void* panel, int64_t bytes) { return static_cast<float*>(static_cast<void*>(static_cast<char*>(panel) + bytes)); }

DZ_INLINE __m256 load8(const float* p) { return _mm256_loadu_ps(p); }
DZ_INLINE __m256 load8(const uint16_t* p) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))), 16));
}

// Four rows of 8 k, `stride` apart: r[j] holds the four rows for k = j (low half) and k = j + 4 (high half).
template <class T>
DZ_INLINE void load_transposed(const T* x, int64_t stride, __m256 (&r)[4]) {
  const __m256 x0 = load8(x), x1 = load8(x + stride), x2 = load8(x + 2 * stride), x3 = load8(x + 3 * stride);
  const __m256d low01 = _mm256_castps_pd(_mm256_unpacklo_ps(x0, x1)), high01 = _mm256_castps_pd(_mm256_unpackhi_ps(x0, x1));
  const __m256d low23 = _mm256_castps_pd(_mm256_unpacklo_ps(x2, x3)), high23 = _mm256_castps_pd(_mm256_unpackhi_ps(x2, x3));
  r[0] = _mm256_castpd_ps(_mm256_unpacklo_pd(low01, low23));
  r[1] = _mm256_castpd_ps(_mm256_unpackhi_pd(low01, low23));
  r[2] = _mm256_castpd_ps(_mm256_unpacklo_pd(high01, high23));
  r[3] = _mm256_castpd_ps(_mm256_unpackhi_pd(high01, high23));
}

// Panel of A: [even k, then odd k][4 rows].
template <class T>
void pack_a_k(const void* source, int64_t stride, void* panel, int64_t panel_stride) {
  for (int64_t p = 0; p < kPackRows / kRows; ++p) {
    const T* x = static_cast<const T*>(source) + p * kRows * stride;
    float* out = offset(panel, p * panel_stride);
    for (int64_t k = 0; k < kGemmBlock; k += 8) {
      __m256 r[4];
      load_transposed(x + k, stride, r);
#pragma GCC unroll 4
      for (int64_t j = 0; j < 4; ++j) {
        _mm_storeu_ps(out + place(k + j) * kRows, _mm256_castps256_ps128(r[j]));
        _mm_storeu_ps(out + place(k + j + 4) * kRows, _mm256_extractf128_ps(r[j], 1));
      }
    }
  }
}

template <class T>
void pack_a_lanes(const void* source, int64_t stride, void* panel, int64_t panel_stride) {
  const T* x = static_cast<const T*>(source);
  for (int64_t k = 0; k < kGemmBlock; ++k, x += stride) {
#pragma GCC unroll 2
    for (int64_t half = 0; half < 2; ++half) {
      const __m256 lanes = load8(x + 8 * half);
      _mm_storeu_ps(offset(panel, 2 * half * panel_stride) + place(k) * kRows, _mm256_castps256_ps128(lanes));
      _mm_storeu_ps(offset(panel, (2 * half + 1) * panel_stride) + place(k) * kRows, _mm256_extractf128_ps(lanes, 1));
    }
  }
}

// Panel of B: [even k, then odd k][16 columns].
template <class T>
void pack_b_k(const void* source, int64_t stride, void* panel, int64_t) {
  for (int64_t k = 0; k < kGemmBlock; k += 8) {
    for (int64_t vector = 0; vector < kVectors; ++vector) {
      const T* x = static_cast<const T*>(source) + vector * 8 * stride + k;
      float* out = static_cast<float*>(panel) + vector * 8;
      __m256 low[4], high[4];
      load_transposed(x, stride, low);
      load_transposed(x + 4 * stride, stride, high);
#pragma GCC unroll 4
      for (int64_t j = 0; j < 4; ++j) {
        _mm256_storeu_ps(out + place(k + j) * kCols, _mm256_permute2f128_ps(low[j], high[j], 0x20));
        _mm256_storeu_ps(out + place(k + j + 4) * kCols, _mm256_permute2f128_ps(low[j], high[j], 0x31));
      }
    }
  }
}

template <class T>
void pack_b_lanes(const void* source, int64_t stride, void* panel, int64_t) {
  const T* x = static_cast<const T*>(source);
  for (int64_t k = 0; k < kGemmBlock; ++k, x += stride) {
    float* out = static_cast<float*>(panel) + place(k) * kCols;
#pragma GCC unroll 2
    for (int64_t vector = 0; vector < kVectors; ++vector) _mm256_storeu_ps(out + vector * 8, load8(x + vector * 8));
  }
}

// The 16 steps of one chain of a 32-block, from +0.
DZ_INLINE void chain(const float* a, const float* b, __m256 (&sums)[4][kVectors]) {
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) sums[i][j] = _mm256_setzero_ps();
  }
#pragma GCC unroll 8
  for (int64_t step = 0; step < kHalf; ++step) {
    const float* row = b + step * kCols;
    const __m256 b0 = _mm256_loadu_ps(row), b1 = _mm256_loadu_ps(row + 8);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const __m256 x = _mm256_broadcast_ss(a + step * kRows + i);
      sums[i][0] = _mm256_fmadd_ps(x, b0, sums[i][0]);
      sums[i][1] = _mm256_fmadd_ps(x, b1, sums[i][1]);
    }
  }
}

void multiply(const void* a_panels, int64_t panels, const void* b_panel, int64_t blocks, float* tiles, bool fresh) {
  const float* a = static_cast<const float*>(a_panels);
  for (int64_t panel = 0; panel < panels; ++panel, tiles += kRows * kCols) {
    const float* b = static_cast<const float*>(b_panel);
    for (int64_t block = 0; block < blocks; ++block, a += kGemmBlock * kRows, b += kGemmBlock * kCols) {
      alignas(32) float even[kRows * kCols];
      __m256 sums[4][kVectors];
      chain(a, b, sums);
#pragma GCC unroll 8
      for (int i = 0; i < kRows * kVectors; ++i) _mm256_store_ps(even + 8 * i, sums[i / kVectors][i % kVectors]);
      chain(a + kHalf * kRows, b + kHalf * kCols, sums);
#pragma GCC unroll 8
      for (int i = 0; i < kRows * kVectors; ++i) {
        const __m256 both = _mm256_add_ps(_mm256_load_ps(even + 8 * i), sums[i / kVectors][i % kVectors]);
        const __m256 before = fresh && block == 0 ? _mm256_setzero_ps() : _mm256_loadu_ps(tiles + 8 * i);
        _mm256_storeu_ps(tiles + 8 * i, _mm256_add_ps(before, both));
      }
    }
  }
}

// Few rows: a row of A is packed like B, even k before odd k.
constexpr int64_t kFewRows = 16;

template <class T>
void few_pack(const void* source, int64_t stride, int64_t rows, int64_t blocks, const void* edge, void* packed) {
  float* out = static_cast<float*>(packed);
  for (int64_t block = 0; block <= blocks; ++block) {
    if (block == blocks && edge == nullptr) return;
    for (int64_t row = 0; row < rows; ++row, out += kGemmBlock) {
      const T* x =
          block < blocks ? static_cast<const T*>(source) + row * stride + block * kGemmBlock : static_cast<const T*>(edge) + row * kGemmBlock;
      for (int64_t k = 0; k < kGemmBlock; k += 8) {
        float wide[8];
        _mm256_storeu_ps(wide, load8(x + k));
        for (int64_t i = 0; i < 8; ++i) out[place(k + i)] = wide[i];
      }
    }
  }
}

// The panel of B for 16 columns stays in L1, and every row of A walks both chains over it.
template <class T>
void few_multiply(const void* packed, int64_t rows, const void* b, int64_t stride, int64_t blocks, const void* edge, const char* ahead, float* tile) {
  constexpr int64_t kLines = kCols * kGemmBlock * static_cast<int64_t>(sizeof(T)) / 64;
  const float* x = static_cast<const float*>(packed);
  for (int64_t i = 0; i < rows * kCols; i += 8) _mm256_store_ps(tile + i, _mm256_setzero_ps());
  for (int64_t block = 0; block <= blocks; ++block) {
    if (block == blocks && edge == nullptr) return;
    alignas(32) float panel[kGemmBlock * kCols];
    if (block < blocks) {
      for (int64_t line = 0; ahead != nullptr && line < kLines; ++line) _mm_prefetch(ahead + (block * kLines + line) * 64, _MM_HINT_T1);
      pack_b_k<T>(static_cast<const T*>(b) + block * kGemmBlock, stride, panel, 0);
    } else {
      pack_b_k<T>(edge, kGemmBlock, panel, 0);
    }
    for (int64_t row = 0; row < rows; ++row, x += kGemmBlock) {
      __m256 even[kVectors] = {_mm256_setzero_ps(), _mm256_setzero_ps()}, odd[kVectors] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
#pragma GCC unroll 16
      for (int64_t step = 0; step < kHalf; ++step) {
        const __m256 x_even = _mm256_broadcast_ss(x + step), x_odd = _mm256_broadcast_ss(x + kHalf + step);
#pragma GCC unroll 2
        for (int64_t j = 0; j < kVectors; ++j) {
          even[j] = _mm256_fmadd_ps(x_even, _mm256_load_ps(panel + step * kCols + 8 * j), even[j]);
          odd[j] = _mm256_fmadd_ps(x_odd, _mm256_load_ps(panel + (kHalf + step) * kCols + 8 * j), odd[j]);
        }
      }
#pragma GCC unroll 2
      for (int64_t j = 0; j < kVectors; ++j) {
        float* sum = tile + row * kCols + 8 * j;
        _mm256_store_ps(sum, _mm256_add_ps(_mm256_load_ps(sum), _mm256_add_ps(even[j], odd[j])));
      }
    }
  }
}

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
          .few = {.rows = kFewRows, .cols = kCols, .row_bytes = kGemmBlock * 4, .pack = few_pack<T>, .multiply = few_multiply<T>},
          .finish = sizeof(T) == 2 ? gemm_finish_bf16 : gemm_finish_f32,
          .keep = gemm_finish_f32};
}

}  // namespace

constinit const GemmForm kGemmBf16 = form<uint16_t>();
constinit const GemmForm kGemmF32 = form<float>();

}  // namespace dz::kernels::avx2
