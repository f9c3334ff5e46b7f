// The queries of a tile as columns of the transposed scores, and which keys each sees.
#pragma once

#include "kernels/amx/attention_tiles.h"

namespace dz::kernels::amx {
namespace {

constexpr int64_t kHalf = 32;  // columns of a register block: two vectors

// Positions [position, position + rows); column i sees the keys [first[i], last[i]], a column without a query none.
struct Columns {
  int64_t position = 0, rows = 0;
  alignas(64) int32_t first[kTile], last[kTile];
};

DZ_INLINE void set_columns(const AttentionShape& shape, int64_t instance, int64_t tile, Columns& out) {
  const int64_t begin = tile * kTile < shape.first_query ? shape.first_query : tile * kTile;
  const int64_t end = (tile + 1) * kTile < shape.keys ? (tile + 1) * kTile : shape.keys;
  out.position = begin;
  out.rows = end - begin;
  for (int64_t i = 0; i < kTile; ++i) {
    const bool exists = i < out.rows;
    out.first[i] = exists ? static_cast<int32_t>(first_visible_key(shape, instance, begin + i)) : INT32_MAX;
    out.last[i] = exists ? static_cast<int32_t>(begin + i) : -1;
  }
}

DZ_INLINE __mmask16 sees(__m512i first, __m512i last, int64_t key) {
  const __m512i k = _mm512_set1_epi32(static_cast<int>(key));
  return _mm512_mask_cmple_epi32_mask(_mm512_cmple_epi32_mask(first, k), k, last);
}

// Whether any column sees any of the keys [key, key + 64): the rule of tiles_visible.
DZ_INLINE bool sees_tile(const Columns& columns, int64_t key) {
  const __m512i begin = _mm512_set1_epi32(static_cast<int>(key)), end = _mm512_set1_epi32(static_cast<int>(key + kTile - 1));
  __mmask16 any = 0;
  for (int64_t i = 0; i < kTile; i += kLanes) {
    const __m512i first = _mm512_max_epi32(_mm512_load_si512(columns.first + i), begin);
    any |= _mm512_cmple_epi32_mask(first, _mm512_min_epi32(_mm512_load_si512(columns.last + i), end));
  }
  return any != 0;
}

// Whether the 32 columns from `column` on see all keys [key, key + count).
DZ_INLINE bool half_sees_all(const Columns& columns, int64_t column, int64_t key, int64_t count) {
  __mmask16 all = 0xffff;
  for (int64_t i = column; i < column + kHalf; i += kLanes) {
    const __m512i first = _mm512_load_si512(columns.first + i), last = _mm512_load_si512(columns.last + i);
    all &= static_cast<__mmask16>(sees(first, last, key) & sees(first, last, key + count - 1));
  }
  return all == 0xffff;
}

}  // namespace
}  // namespace dz::kernels::amx
