// AVX512_BF16 form. VDPBF16PS computes fma(lo, fma(hi, sum)) over a pair of bf16: with hi = k and lo = k + 2 it walks one of the two chains
// of a 32-block two steps at a time, in the contract's order.
#include <immintrin.h>

#include "kernels/avx512/few.h"
#include "kernels/avx512/transpose.h"
#include "kernels/gemm_form.h"

namespace dz::kernels::avx512_bf16 {
namespace {

// As in the AVX-512 FMA form, a step being four k instead of two.
constexpr int64_t kRows = 4, kCols = 32, kPackRows = 16;

// 32 k of one row, as pairs: word 2q is the even chain's of k = 4q, word 2q + 1 the odd chain's.
DZ_INLINE __m512i load_pairs(const uint16_t* p) {
  const __m512i order = _mm512_broadcast_i32x4(_mm_setr_epi8(4, 5, 0, 1, 6, 7, 2, 3, 12, 13, 8, 9, 14, 15, 10, 11));
  return _mm512_shuffle_epi8(_mm512_loadu_si512(p), order);
}

// The pair (k, k + 2) of 16 neighbouring lanes, `stride` elements from one k to the next.
DZ_INLINE __m512i join_pairs(const uint16_t* p, int64_t stride) {
  return _mm512_or_si512(_mm512_slli_epi32(load_halves(p), 16), load_halves(p + 2 * stride));
}

// Panel of A: [q][even, odd][4 rows] pairs.
void pack_a_k(const void* source, int64_t stride, void* panel, int64_t panel_stride) {
#pragma GCC unroll 4
  for (int64_t p = 0; p < kPackRows / kRows; ++p) {
    const uint16_t* x = static_cast<const uint16_t*>(source) + p * kRows * stride;
    __m512i r[4] = {load_pairs(x), load_pairs(x + stride), load_pairs(x + 2 * stride), load_pairs(x + 3 * stride)};
    store_4x16(r, reinterpret_cast<uint32_t*>(static_cast<char*>(panel) + p * panel_stride));
  }
}

void pack_a_lanes(const void* source, int64_t stride, void* panel, int64_t panel_stride) {
  const uint16_t* x = static_cast<const uint16_t*>(source);
  char* out = static_cast<char*>(panel);
  for (int64_t k = 0; k < kGemmBlock; k += 4, x += 4 * stride, out += 2 * kRows * 4) {
    store_quarters(join_pairs(x, stride), out, panel_stride);
    store_quarters(join_pairs(x + stride, stride), out + kRows * 4, panel_stride);
  }
}

// Panel of B: [q][even, odd][32 columns] pairs.
void pack_b_k(const void* source, int64_t stride, void* panel, int64_t) {
  for (int64_t half = 0; half < kCols; half += 16) {
    const uint16_t* x = static_cast<const uint16_t*>(source) + half * stride;
    __m512i r[4][4];
#pragma GCC unroll 16
    for (int64_t i = 0; i < 16; ++i) r[i / 4][i % 4] = load_pairs(x + i * stride);
    store_16x16(r, static_cast<uint32_t*>(panel) + half, kCols);
  }
}

void pack_b_lanes(const void* source, int64_t stride, void* panel, int64_t) {
  const uint16_t* x = static_cast<const uint16_t*>(source);
  uint32_t* out = static_cast<uint32_t*>(panel);
  for (int64_t k = 0; k < kGemmBlock; k += 4, x += 4 * stride, out += 2 * kCols) {
    _mm512_storeu_si512(out, join_pairs(x, stride));
    _mm512_storeu_si512(out + 16, join_pairs(x + 16, stride));
    _mm512_storeu_si512(out + kCols, join_pairs(x + stride, stride));
    _mm512_storeu_si512(out + kCols + 16, join_pairs(x + stride + 16, stride));
  }
}

DZ_INLINE __m512bh pairs(const uint32_t* p) { return (__m512bh)_mm512_loadu_si512(p); }
DZ_INLINE __m512bh broadcast(uint32_t pair) { return (__m512bh)_mm512_set1_epi32(static_cast<int>(pair)); }

void multiply(const void* a_panels, int64_t panels, const void* b_panel, int64_t blocks, float* tiles, bool fresh) {
  const uint32_t* a = static_cast<const uint32_t*>(a_panels);
  for (int64_t panel = 0; panel < panels; ++panel, tiles += kRows * kCols) {
    const uint32_t* b = static_cast<const uint32_t*>(b_panel);
    __m512 sums[4][2];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) sums[i / 2][i % 2] = fresh ? _mm512_setzero_ps() : _mm512_loadu_ps(tiles + 16 * i);
    for (int64_t block = 0; block < blocks; ++block) {
      __m512 even[4][2], odd[4][2];
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) even[i / 2][i % 2] = odd[i / 2][i % 2] = _mm512_setzero_ps();
#pragma GCC unroll 8
      for (int k = 0; k < kGemmBlock; k += 4, a += 2 * kRows, b += 2 * kCols) {
        const __m512bh e0 = pairs(b), e1 = pairs(b + 16), o0 = pairs(b + 32), o1 = pairs(b + 48);
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
          const __m512bh x = broadcast(a[i]), y = broadcast(a[4 + i]);
          even[i][0] = _mm512_dpbf16_ps(even[i][0], x, e0);
          even[i][1] = _mm512_dpbf16_ps(even[i][1], x, e1);
          odd[i][0] = _mm512_dpbf16_ps(odd[i][0], y, o0);
          odd[i][1] = _mm512_dpbf16_ps(odd[i][1], y, o1);
        }
      }
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) sums[i / 2][i % 2] = _mm512_add_ps(sums[i / 2][i % 2], _mm512_add_ps(even[i / 2][i % 2], odd[i / 2][i % 2]));
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) _mm512_storeu_ps(tiles + 16 * i, sums[i / 2][i % 2]);
  }
}

// Few rows: a row of A as load_pairs leaves it, 16 columns of B as the same words transposed.
struct FewPairs {
  using Element = uint16_t;
  static constexpr int64_t kRowBytes = kGemmBlock * 2;

  DZ_INLINE static void pack_row(const uint16_t* x, char* out) { _mm512_storeu_si512(out, load_pairs(x)); }

  DZ_INLINE static void transpose(const uint16_t* x, int64_t stride, uint32_t* words) {
    __m512i r[4][4];
#pragma GCC unroll 16
    for (int64_t i = 0; i < 16; ++i) r[i / 4][i % 4] = load_pairs(x + i * stride);
    store_16x16(r, words, kFewCols);
  }

  DZ_INLINE static __m512 both_chains(const char* row, const uint32_t* words) {
    const uint32_t* x = static_cast<const uint32_t*>(static_cast<const void*>(row));
    __m512 even = _mm512_setzero_ps(), odd = _mm512_setzero_ps();
#pragma GCC unroll 8
    for (int64_t word = 0; word < kGemmBlock / 2; word += 2) {
      even = _mm512_dpbf16_ps(even, broadcast(x[word]), pairs(words + word * kFewCols));
      odd = _mm512_dpbf16_ps(odd, broadcast(x[word + 1]), pairs(words + (word + 1) * kFewCols));
    }
    return _mm512_add_ps(even, odd);
  }
};

}  // namespace

constinit const GemmForm kGemmBf16 = {.rows = kRows,
                                      .cols = kCols,
                                      .pack_rows = kPackRows,
                                      .a_block = kRows * kGemmBlock * 2,
                                      .b_block = kCols * kGemmBlock * 2,
                                      .chunk = 8,
                                      .pack_a_k = pack_a_k,
                                      .pack_a_lanes = pack_a_lanes,
                                      .pack_b_k = pack_b_k,
                                      .pack_b_lanes = pack_b_lanes,
                                      .multiply = multiply,
                                      .few = few<FewPairs>(),
                                      .finish = gemm_finish_bf16,
                                      .keep = gemm_finish_f32};

}  // namespace dz::kernels::avx512_bf16
