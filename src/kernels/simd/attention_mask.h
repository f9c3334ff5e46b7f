// What a query sees, by tiles (kernels/attention.h), and the numbers that forward and backward share.
#pragma once

#include "kernels/attention.h"
#include "kernels/simd/tile.h"
#include "numerics/constants.h"

namespace dz::kernels::DZ_SIMD {

// The queries of a tile that exist: positions [position, position + rows), each with the first key that it sees.
struct QueryRows {
  int64_t position = 0;
  int64_t rows = 0;
  int64_t first_key[kTile];
};

DZ_INLINE QueryRows query_rows(const AttentionShape& shape, int64_t instance, int64_t tile) {
  QueryRows out;
  const int64_t begin = tile * kTile < shape.first_query ? shape.first_query : tile * kTile;
  const int64_t end = (tile + 1) * kTile < shape.keys ? (tile + 1) * kTile : shape.keys;
  out.position = begin;
  out.rows = end - begin;
  for (int64_t i = 0; i < out.rows; ++i) out.first_key[i] = first_visible_key(shape, instance, begin + i);
  return out;
}

// Whether any of the queries sees any of the keys [key, key + 64): the rule of tiles_visible.
DZ_INLINE bool sees_tile(const QueryRows& queries, int64_t key) {
  for (int64_t i = 0; i < queries.rows; ++i) {
    const int64_t position = queries.position + i, first = queries.first_key[i];
    if (first < key + kTile && first <= position && position >= key) return true;
  }
  return false;
}

// Whether query `row` sees all keys [key, key + 64).
DZ_INLINE bool sees_all(const QueryRows& queries, int64_t row, int64_t key) {
  return queries.first_key[row] <= key && queries.position + row >= key + kTile - 1;
}

// The visible lanes of query `row` among the keys from `key` on; offsets this small are exact as floats.
struct VisibleKeys {
  V16 first, last;
  DZ_INLINE Mask among(int v) const {
    const V16 lane = load(kOffsets) + splat(static_cast<float>(v * kLanes));
    return (lane >= first) & (last >= lane);
  }
  alignas(64) static constexpr float kOffsets[kLanes] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
};

DZ_INLINE float tile_offset(int64_t offset) { return static_cast<float>(offset < -1 ? -1 : (offset > kTile ? kTile : offset)); }

DZ_INLINE VisibleKeys visible_keys(const QueryRows& queries, int64_t row, int64_t key) {
  return {splat(tile_offset(queries.first_key[row] - key)), splat(tile_offset(queries.position + row - key))};
}

}  // namespace dz::kernels::DZ_SIMD
