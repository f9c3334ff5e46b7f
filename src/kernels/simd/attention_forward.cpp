// Attention forward by tiles of 64 queries and 64 keys on stack scratch. Scores and values are two small products in the order of the matrix
// product; between them the running maximum and sum of a row move on by one key tile.
#include "kernels/attention_ahead.h"
#include "kernels/simd/attention_mask.h"
#include "kernels/simd/functions.h"
#include "kernels/simd/ops.h"
#include "kernels/simd/pack.h"
#include "kernels/simd/tile.h"

namespace dz::kernels::DZ_SIMD {
namespace {

constexpr int kKeyVectors = static_cast<int>(kTile / kLanes);

constexpr int64_t kGroup = 4;  // query tiles that share one packing of a key tile

// A query tile on its way through the key tiles.
template <class Word>
struct QueryTile {
  QueryRows queries;
  alignas(64) Word q[kTile * kMaxHeadDim];  // left
  alignas(64) float o[kTile * kMaxHeadDim];
  alignas(64) float m[kTile], l[kTile];
};

// Tiles in the layouts of tile.h.
template <class Word>
struct Scratch {
  QueryTile<Word> tiles[kGroup];
  alignas(64) Word k_left[kTile * kMaxHeadDim], k_columns[kMaxHeadDim * kTile], v_right[kTile * kMaxHeadDim];
  alignas(64) Word p_left[kTile * kTile];
  alignas(64) float t[kTile * kTile];  // S, then t
  alignas(64) float next_m[kTile], alpha[kTile], row_sum[kTile];
};

// t = S * c with masked entries -inf, and the new maximum of each row.
template <class Word>
DZ_INLINE void scale_and_mask(const QueryTile<Word>& tile, Scratch<Word>& s, int64_t key, float c) {
  const QueryRows& queries = tile.queries;
  const V16 c16 = splat(c), hidden = splat(-numerics::kInfinity);
  for (int64_t i = 0; i < queries.rows; ++i) {
    float* row = s.t + i * kTile;
    V16 t[kKeyVectors];
    for (int v = 0; v < kKeyVectors; ++v) t[v] = load(row + v * kLanes) * c16;
    if (!sees_all(queries, i, key)) {
      const VisibleKeys visible = visible_keys(queries, i, key);
      for (int v = 0; v < kKeyVectors; ++v) t[v] = select(visible.among(v), t[v], hidden);
    }
    V16 m = splat(tile.m[i]);
    for (int v = 0; v < kKeyVectors; ++v) {
      m = raise(m, t[v]);
      store(row + v * kLanes, t[v]);
    }
    s.next_m[i] = greatest(m);
  }
}

// P = exp2(t - m'), rounded to the compute type after its row sum; then l and O are brought to the new maximum.
template <class T, class Word>
DZ_INLINE void exponentials(QueryTile<Word>& tile, Scratch<Word>& s, int64_t width) {
  const int64_t rows = tile.queries.rows;
  for (int64_t i = 0; i < rows; ++i) {
    const float* row = s.t + i * kTile;
    const V16 m = splat(s.next_m[i]);
    V16 lanes = zero();
    for (int v = 0; v < kKeyVectors; ++v) {
      const V16 p = exp2_of_negative<T>(load(row + v * kLanes) - m);
      lanes = lanes + p;
      store_left<T>(s.p_left, i, v, p);
    }
    s.row_sum[i] = sum(lanes);
  }
  for (int64_t i = 0; i < rows; i += kLanes) {
    const V16 next = load(s.next_m + i), alpha = exp2_of_negative<T>(load(tile.m + i) - next);
    store(s.alpha + i, alpha);
    store(tile.l + i, load(tile.l + i) * alpha + load(s.row_sum + i));
    store(tile.m + i, next);
  }
  for (int64_t i = 0; i < rows; ++i) {
    if (s.alpha[i] == 1.0f) continue;
    const V16 alpha = splat(s.alpha[i]);
    for (int64_t j = 0; j < width; j += kLanes) store(tile.o + i * width + j, load(tile.o + i * width + j) * alpha);
  }
}

template <class T, class Word>
DZ_INLINE void start(const AttentionForward<T>& args, int64_t instance, int64_t head, int64_t tile_index, QueryTile<Word>& tile) {
  const AttentionShape& shape = args.shape;
  tile.queries = query_rows(shape, instance, tile_index);
  const int64_t count = shape.keys - shape.first_query, first = tile.queries.position - shape.first_query;
  const T* q = args.q + ((instance * count + first) * shape.heads + head) * shape.head_dim;
  pack_left(q, shape.heads * shape.head_dim, tile.queries.rows, shape.head_dim, tile.q);
  clear(tile.o, kTile * padded(shape.head_dim));
  clear(tile.l, kTile);
  for (int64_t i = 0; i < kTile; ++i) tile.m[i] = numerics::kLowest;
}

template <class T, class Word>
DZ_INLINE void finish(const AttentionForward<T>& args, int64_t instance, int64_t head, const QueryTile<Word>& tile) {
  const AttentionShape& shape = args.shape;
  const int64_t count = shape.keys - shape.first_query, first = tile.queries.position - shape.first_query;
  const int64_t width = padded(shape.head_dim);
  for (int64_t i = 0; i < tile.queries.rows; ++i) {
    const float scale = tile.l[i] == 0.0f ? 0.0f : 1.0f / tile.l[i];
    T* out = args.out + ((instance * count + first + i) * shape.heads + head) * shape.head_dim;
    for_vectors(shape.head_dim, [&](int64_t j, auto lanes) { store(out + j, load(tile.o + i * width + j) * splat(scale) + zero(), lanes); });
    const int64_t at = (instance * shape.heads + head) * count + first + i;
    if (args.row_max != nullptr) args.row_max[at] = tile.m[i] + 0.0f;
    if (args.row_scale != nullptr) args.row_scale[at] = scale;
  }
}

// The keys of one tile for those of the query tiles that see any of them.
template <class T, class Word>
DZ_INLINE void key_tile(const AttentionForward<T>& args, int64_t instance, int64_t kv_head, int64_t key, int64_t tiles, Scratch<Word>& s) {
  const AttentionShape& shape = args.shape;
  const int64_t dim = shape.head_dim, width = padded(dim), stride = shape.kv_heads * dim;
  const int64_t keys = shape.keys - key < kTile ? shape.keys - key : kTile;
  const int64_t at = (instance * shape.keys + key) * stride + kv_head * dim;
  bool packed = false;
  for (int64_t i = 0; i < tiles; ++i) {
    QueryTile<Word>& tile = s.tiles[i];
    if (!sees_tile(tile.queries, key)) continue;
    if (!packed) {
      ask_for_keys(args, instance, kv_head, key + kTile);
      pack_left(args.k + at, stride, keys, dim, s.k_left);
      transpose(s.k_left, dim, s.k_columns);
      pack_right(args.v + at, stride, keys, dim, s.v_right);
      packed = true;
    }
    product(left(tile.q, dim), s.k_columns, s.t, tile.queries.rows, kTile, width, false);
    scale_and_mask(tile, s, key, attention_scale(dim).exponent);
    exponentials<T>(tile, s, width);
    product(left(s.p_left, kTile), s.v_right, tile.o, tile.queries.rows, width, padded(keys), true);
  }
}

// `tiles` neighbouring query tiles of one head, from tile `first` on.
template <class T, class Word>
void query_tiles(const AttentionForward<T>& args, int64_t instance, int64_t head, int64_t first, int64_t tiles, Scratch<Word>& s) {
  for (int64_t i = 0; i < tiles; ++i) start(args, instance, head, first + i, s.tiles[i]);
  const int64_t kv_head = head / (args.shape.heads / args.shape.kv_heads);
  for (int64_t key = 0; key < (first + tiles) * kTile && key < args.shape.keys; key += kTile) {
    key_tile(args, instance, kv_head, key, tiles, s);
  }
  for (int64_t i = 0; i < tiles; ++i) finish(args, instance, head, s.tiles[i]);
}

}  // namespace

template <class T>
void attention_forward(const AttentionForward<T>& args, int64_t begin, int64_t end) {
  const AttentionShape& shape = args.shape;
  const int64_t first_tile = shape.first_query / kTile, tiles = (shape.keys + kTile - 1) / kTile - first_tile;
  Scratch<typename WordFor<T>::Type> s;
  // Rows past the end of a tile are read, not used; and whole vectors of row statistics.
  clear(s.p_left, kTile * kTile);
  clear(s.next_m, kTile);
  clear(s.row_sum, kTile);
  for (int64_t unit = begin; unit < end;) {
    const int64_t tile = unit % tiles, left_in_head = tiles - tile, left = end - unit < left_in_head ? end - unit : left_in_head;
    const int64_t group = left < kGroup ? left : kGroup;
    query_tiles(args, unit / (tiles * shape.heads), unit / tiles % shape.heads, first_tile + tile, group, s);
    unit += group;
  }
}

template void attention_forward<bf16>(const AttentionForward<bf16>&, int64_t, int64_t);
template void attention_forward<float>(const AttentionForward<float>&, int64_t, int64_t);

}  // namespace dz::kernels::DZ_SIMD
