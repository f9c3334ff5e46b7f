// AMX form. TDPBF16PS over two tiles of 32 k is one 32-block of the contract: a chain over the low halves of the pairs, one over the high
// halves, both from +0, their sum added to the accumulator; denormals are flushed.
#include "kernels/amx/few.h"
#include "kernels/amx/tiles.h"
#include "kernels/avx512/transpose.h"
#include "kernels/gemm_form.h"

namespace dz::kernels::amx {
namespace {

// 2 x 2 tiles: four products for four tile loads. tmm0-3 accumulate, tmm4-5 hold A, tmm6-7 hold B.
constexpr int64_t kRows = 32, kCols = 32, kTileBytes = 1024, kTileWords = kTileBytes / 4;

// The pair (k, k + 1) of 16 neighbouring lanes, `stride` elements from one k to the next.
DZ_INLINE __m512i join_pairs(const uint16_t* p, int64_t stride) {
  return _mm512_or_si512(load_halves(p), _mm512_slli_epi32(load_halves(p + stride), 16));
}

// 16 rows of 32 k, `stride` apart, as words (pairs of k).
DZ_INLINE void load_rows(const uint16_t* x, int64_t stride, __m512i (&r)[4][4]) {
#pragma GCC unroll 16
  for (int64_t i = 0; i < 16; ++i) r[i / 4][i % 4] = _mm512_loadu_si512(x + i * stride);
}

// Panel of A: two tiles [16 rows][32 k].
void pack_a_k(const void* source, int64_t stride, void* panel, int64_t) {
  const uint16_t* x = static_cast<const uint16_t*>(source);
  char* out = static_cast<char*>(panel);
#pragma GCC unroll 8
  for (int64_t row = 0; row < kRows; ++row) _mm512_storeu_si512(out + row * 64, _mm512_loadu_si512(x + row * stride));
}

void pack_a_lanes(const void* source, int64_t stride, void* panel, int64_t) {
  for (int64_t tile = 0; tile < 2; ++tile) {
    const uint16_t* x = static_cast<const uint16_t*>(source) + 16 * tile;
    __m512i r[4][4];
#pragma GCC unroll 16
    for (int64_t pair = 0; pair < 16; ++pair) r[pair / 4][pair % 4] = join_pairs(x + 2 * pair * stride, stride);
    store_16x16(r, static_cast<uint32_t*>(panel) + tile * kTileWords, 16);
  }
}

// Panel of B: two tiles [16 pairs of k][16 columns].
void pack_b_k(const void* source, int64_t stride, void* panel, int64_t) {
  for (int64_t tile = 0; tile < 2; ++tile) {
    __m512i r[4][4];
    load_rows(static_cast<const uint16_t*>(source) + 16 * tile * stride, stride, r);
    store_16x16(r, static_cast<uint32_t*>(panel) + tile * kTileWords, 16);
  }
}

void pack_b_lanes(const void* source, int64_t stride, void* panel, int64_t) {
  const uint16_t* x = static_cast<const uint16_t*>(source);
  uint32_t* out = static_cast<uint32_t*>(panel);
  for (int64_t pair = 0; pair < 16; ++pair, x += 2 * stride, out += 16) {
    _mm512_storeu_si512(out, join_pairs(x, stride));
    _mm512_storeu_si512(out + kTileWords, join_pairs(x + 16, stride));
  }
}

void multiply(const void* a_panels, int64_t panels, const void* b_panel, int64_t blocks, float* tiles, bool fresh) {
  constexpr int64_t kRowBytes = kCols * 4;
  const char* a = static_cast<const char*>(a_panels);
  finish_stores();
  for (int64_t panel = 0; panel < panels; ++panel, tiles += kRows * kCols) {
    const char* b = static_cast<const char*>(b_panel);
    float* lower = tiles + 16 * kCols;
    if (fresh) {
      _tile_zero(0);
      _tile_zero(1);
      _tile_zero(2);
      _tile_zero(3);
    } else {
      _tile_loadd(0, tiles, kRowBytes);
      _tile_loadd(1, tiles + 16, kRowBytes);
      _tile_loadd(2, lower, kRowBytes);
      _tile_loadd(3, lower + 16, kRowBytes);
    }
    for (int64_t block = 0; block < blocks; ++block, a += 2 * kTileBytes, b += 2 * kTileBytes) {
      _tile_loadd(4, a, 64);
      _tile_loadd(6, b, 64);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(7, b + kTileBytes, 64);
      _tile_dpbf16ps(1, 4, 7);
      _tile_loadd(5, a + kTileBytes, 64);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, tiles, kRowBytes);
    _tile_stored(1, tiles + 16, kRowBytes);
    _tile_stored(2, lower, kRowBytes);
    _tile_stored(3, lower + 16, kRowBytes);
  }
  finish_stores();
}

void begin() { _tile_loadconfig(&kTileConfig); }
void end() { _tile_release(); }

}  // namespace

constinit const GemmForm kGemmBf16 = {.rows = kRows,
                                      .cols = kCols,
                                      .pack_rows = kRows,
                                      .a_block = kRows * kGemmBlock * 2,
                                      .b_block = kCols * kGemmBlock * 2,
                                      .pack_a_k = pack_a_k,
                                      .pack_a_lanes = pack_a_lanes,
                                      .pack_b_k = pack_b_k,
                                      .pack_b_lanes = pack_b_lanes,
                                      .multiply = multiply,
                                      .few = kFew,
                                      .finish = avx512_bf16::gemm_finish_bf16,
                                      .keep = avx512_bf16::gemm_finish_f32,
                                      .begin = begin,
                                      .end = end};

}  // namespace dz::kernels::amx
