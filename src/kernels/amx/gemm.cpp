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

// The pairs (k, k + 1) of 32 neighbouring lanes, 16 lanes each; `stride` elements from one k to the next.
struct Pairs {
  __m512i low, high;
};
DZ_INLINE Pairs join_pairs(const uint16_t* p, int64_t stride) {
  const __m512i first =
      _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i second = _mm512_add_epi16(first, _mm512_set1_epi16(16));
  const __m512i even = _mm512_loadu_si512(p), odd = _mm512_loadu_si512(p + stride);
  return {_mm512_permutex2var_epi16(even, first, odd), _mm512_permutex2var_epi16(even, second, odd)};
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
  const uint16_t* x = static_cast<const uint16_t*>(source);
  __m512i low[4][4], high[4][4];
#pragma GCC unroll 16
  for (int64_t pair = 0; pair < 16; ++pair, x += 2 * stride) {
    const Pairs pairs = join_pairs(x, stride);
    low[pair / 4][pair % 4] = pairs.low;
    high[pair / 4][pair % 4] = pairs.high;
  }
  store_16x16(low, static_cast<uint32_t*>(panel), 16);
  store_16x16(high, static_cast<uint32_t*>(panel) + kTileWords, 16);
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
    const Pairs pairs = join_pairs(x, stride);
    _mm512_storeu_si512(out, pairs.low);
    _mm512_storeu_si512(out + kTileWords, pairs.high);
  }
}

// Cache lines asked for in even steps while tiles are multiplied; for L1 (3) or L2 (2).
template <int kCache>
class Asker {
 public:
  DZ_INLINE Asker(const GemmAhead& ahead, int64_t steps)
      : row_(static_cast<const char*>(ahead.first)),
        stride_(ahead.stride),
        lines_(ahead.lines),
        left_(ahead.rows * ahead.lines),
        each_((left_ + steps - 1) / steps) {}
  DZ_INLINE void step() {
    for (int64_t i = 0; i < each_ && left_ > 0; ++i, --left_) {
      __builtin_prefetch(row_ + 64 * line_, 0, kCache);
      if (++line_ == lines_) {
        line_ = 0;
        row_ += stride_;
      }
    }
  }

 private:
  const char* row_;
  int64_t stride_, lines_, left_, each_, line_ = 0;
};

// Of a panel of A, this much stays in L1 while panels of B pass it.
constexpr int64_t kNearBlocks = 16;

// A tile from L1 takes 8 cycles, one from L2 about 20, TDPBF16PS 16: half of the loads from L1 are enough. A's panel meets one panel of B after the
// other, so L1 keeps its first blocks; TILELOADDT1 reads everything else past L1, where it would push them out. 2.3 ticks above the peak's 14.6 at
// 256 k, 1.0 at 768 (of the time stamp counter); with TILELOADD alone 4 and 8.
void multiply_tile(const GemmTile& t) {
  constexpr int64_t kRowBytes = kCols * 4;
  float* const lower = t.tile + 16 * kCols;
  finish_stores();
  if (t.fresh) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, t.tile, kRowBytes);
    _tile_loadd(1, t.tile + 16, kRowBytes);
    _tile_loadd(2, lower, kRowBytes);
    _tile_loadd(3, lower + 16, kRowBytes);
  }
  const char* a = static_cast<const char*>(t.a);
  const char* b = static_cast<const char*>(t.b);
  const int64_t row = t.a_row, to_lower = 16 * row;
  if (t.blocks > 0) {
    Asker<2> ahead(t.ahead, t.blocks);
    Asker<3> output(t.output, t.blocks);
    _tile_loadd(4, a, row);
    _tile_loadd(5, a + to_lower, row);
    _tile_stream_loadd(6, b, 64);
    _tile_stream_loadd(7, b + kTileBytes, 64);
    const auto step = [&]<bool in_l1>() __attribute__((always_inline)) {
      a += t.a_block;
      b += 2 * kTileBytes;
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      if constexpr (in_l1) {
        _tile_loadd(4, a, row);
      } else {
        _tile_stream_loadd(4, a, row);
      }
      ahead.step();
      _tile_dpbf16ps(2, 5, 6);
      _tile_stream_loadd(6, b, 64);
      output.step();
      _tile_dpbf16ps(3, 5, 7);
      if constexpr (in_l1) {
        _tile_loadd(5, a + to_lower, row);
      } else {
        _tile_stream_loadd(5, a + to_lower, row);
      }
      _tile_stream_loadd(7, b + kTileBytes, 64);
    };
    const int64_t near = t.blocks < kNearBlocks ? t.blocks : kNearBlocks;
    int64_t block = 1;
    for (; block < near; ++block) step.template operator()<true>();
    for (; block < t.blocks; ++block) step.template operator()<false>();
    ahead.step();
    output.step();
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, t.tile, kRowBytes);
  _tile_stored(1, t.tile + 16, kRowBytes);
  _tile_stored(2, lower, kRowBytes);
  _tile_stored(3, lower + 16, kRowBytes);
  finish_stores();
}

void multiply(const void* a_panels, int64_t panels, const void* b_panel, int64_t blocks, float* tiles, bool fresh) {
  const char* a = static_cast<const char*>(a_panels);
  for (int64_t panel = 0; panel < panels; ++panel, tiles += kRows * kCols, a += blocks * 2 * kTileBytes) {
    multiply_tile({.a = a, .a_row = 64, .a_block = 2 * kTileBytes, .b = b_panel, .blocks = blocks, .tile = tiles, .fresh = fresh});
  }
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
                                      .packed_row = 2 * kGemmBlock,
                                      .multiply_tile = multiply_tile,
                                      .few = kFew,
                                      .finish = avx512_bf16::gemm_finish_bf16,
                                      .keep = avx512_bf16::gemm_finish_f32,
                                      .begin = begin,
                                      .end = end};

}  // namespace dz::kernels::amx
