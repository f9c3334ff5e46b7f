// Attention backward by tiles of 64 queries and 64 keys. Key tiles are the outer loop: dK and dV of a key tile are one chain over (query head,
// query tile) and stay on the stack; each query tile is packed once and gathers its dQ over the key tiles in ascending order.
#include "kernels/attention_scratch.h"
#include "kernels/simd/attention_mask.h"
#include "kernels/simd/functions.h"
#include "kernels/simd/ops.h"
#include "kernels/simd/pack.h"
#include "kernels/simd/tile.h"

namespace dz::kernels::DZ_SIMD {
namespace {

constexpr int kKeyVectors = static_cast<int>(kTile / kLanes);

// What every key tile needs of a query tile: its rows in the layouts of tile.h (left and right are one for floats), for each row the maximum,
// 1 / l and D = row sum of dO * O, and its gradient so far.
template <class Word>
struct QueryTile {
  QueryRows queries;
  float m[kTile], scale[kTile], d[kTile];
  const Word *q_left, *q_right, *dout_left, *dout_right;
  float* dq;
};

// Of one key tile and of the pair of tiles at hand.
template <class Word>
struct Scratch {
  alignas(64) Word k_left[kTile * kMaxHeadDim], k_right[kTile * kMaxHeadDim], k_columns[kMaxHeadDim * kTile];
  alignas(64) Word v_left[kTile * kMaxHeadDim], v_columns[kMaxHeadDim * kTile];
  alignas(64) Word p_right[kTile * kTile], ds_left[kTile * kTile], ds_right[kTile * kTile];
  alignas(64) float dk[kTile * kMaxHeadDim], dv[kTile * kMaxHeadDim];
  alignas(64) float t[kTile * kTile], dp[kTile * kTile];
};

// Packs a query tile into the memory at `to`, which moves on.
template <class T, class Word>
DZ_INLINE void pack_query_tile(const AttentionBackward<T>& args, int64_t instance, int64_t head, int64_t tile, Word*& to, QueryTile<Word>& out) {
  const AttentionShape& shape = args.shape;
  const int64_t dim = shape.head_dim, stride = shape.heads * dim, rows_of_tile = kTile * padded(dim), words = rows_of_tile / k_per_word<Word>();
  out.queries = query_rows(shape, instance, tile);
  const int64_t rows = out.queries.rows, at = (instance * shape.keys + out.queries.position) * stride + head * dim;
  pack_left(args.q + at, stride, rows, dim, to);
  out.q_left = to;
  out.q_right = pack_right_too(args.q + at, stride, rows, dim, to, to + words);
  to += words * k_per_word<Word>();
  pack_left(args.dout + at, stride, rows, dim, to);
  out.dout_left = to;
  out.dout_right = pack_right_too(args.dout + at, stride, rows, dim, to, to + words);
  to += words * k_per_word<Word>();
  out.dq = reinterpret_cast<float*>(to);
  clear(out.dq, rows_of_tile);
  to += rows_of_tile;

  const int64_t statistics = (instance * shape.heads + head) * shape.keys + out.queries.position;
  for (int64_t i = 0; i < rows; ++i) {
    V16 dot = zero();
    for_vectors(dim, [&](int64_t j, auto lanes) {
      dot = fma(load(args.dout + at + i * stride + j, lanes), load(args.out + at + i * stride + j, lanes), dot);
    });
    out.d[i] = sum(dot);
    out.m[i] = args.row_max[statistics + i];
    out.scale[i] = args.row_scale[statistics + i];
  }
}

// From S and dP: P = exp2(t - m) * (1 / l) and dS = (P * (dP - D)) * scale, both rounded; rows past the end are +0, and so are keys past the
// end, which would else turn an infinite D into NaN. Gives dS in the right layout.
template <class T, class Word>
DZ_INLINE const Word* score_gradients(const QueryTile<Word>& tile, int64_t key, int64_t keys, AttentionScale scale, Scratch<Word>& s) {
  const V16 c16 = splat(scale.exponent), scale16 = splat(scale.gradient), hidden = splat(-numerics::kInfinity);
  T p_rows[kTile * kTile], ds_rows[kTile * kTile];
  for (int64_t i = 0; i < tile.queries.rows; ++i) {
    const V16 m = splat(tile.m[i]), l = splat(tile.scale[i]), d = splat(tile.d[i]);
    const bool all = sees_all(tile.queries, i, key);
    const VisibleKeys visible = visible_keys(tile.queries, i, key);
    for (int v = 0; v < kKeyVectors; ++v) {
      const int64_t at = i * kTile + v * kLanes;
      V16 t = load(s.t + at) * c16;
      if (!all) t = select(visible.among(v), t, hidden);
      const V16 p = exp2_of_negative<T>(t - m) * l;
      store(p_rows + at, p);
      store(ds_rows + at, p * (load(s.dp + at) - d) * scale16);
    }
  }
  pack_right(p_rows, kTile, tile.queries.rows, kTile, s.p_right);
  pack_left(ds_rows, kTile, tile.queries.rows, keys, s.ds_left);
  return pack_right_too(ds_rows, kTile, tile.queries.rows, keys, s.ds_left, s.ds_right);
}

template <class T, class Word>
DZ_INLINE void tile_pair(const QueryTile<Word>& tile, const Word* k_right, int64_t dim, int64_t key, int64_t keys, Scratch<Word>& s) {
  const int64_t rows = tile.queries.rows, wide = padded(dim);
  product(left(tile.q_left, dim), s.k_columns, s.t, rows, kTile, wide, false);
  product(left(tile.dout_left, dim), s.v_columns, s.dp, rows, kTile, wide, false);
  const Word* ds_right = score_gradients<T>(tile, key, keys, attention_scale(dim), s);
  product(left_transposed(s.p_right, kTile), tile.dout_right, s.dv, keys, wide, padded(rows), true);
  product(left_transposed(ds_right, keys), tile.q_right, s.dk, keys, wide, padded(rows), true);
  product(left(s.ds_left, keys), k_right, tile.dq, rows, wide, padded(keys), true);
}

// One key tile against all query tiles, which lie head by head, `tiles` a head.
template <class T, class Word>
void key_tile(const AttentionBackward<T>& args, int64_t instance, int64_t kv_head, int64_t key, const QueryTile<Word>* query_tiles, int64_t tiles,
              Scratch<Word>& s) {
  const AttentionShape& shape = args.shape;
  const int64_t dim = shape.head_dim, wide = padded(dim), group = shape.heads / shape.kv_heads, stride = shape.kv_heads * dim;
  const int64_t keys = shape.keys - key < kTile ? shape.keys - key : kTile;
  const int64_t at = (instance * shape.keys + key) * stride + kv_head * dim;
  pack_left(args.v + at, stride, keys, dim, s.v_left);
  transpose(s.v_left, dim, s.v_columns);
  pack_left(args.k + at, stride, keys, dim, s.k_left);
  const Word* k_right = pack_right_too(args.k + at, stride, keys, dim, s.k_left, s.k_right);
  transpose(s.k_left, dim, s.k_columns);
  clear(s.dk, kTile * wide);
  clear(s.dv, kTile * wide);

  for (int64_t head = 0; head < group; ++head) {
    for (int64_t tile = key / kTile; tile < tiles; ++tile) {
      const QueryTile<Word>& queries = query_tiles[head * tiles + tile];
      if (sees_tile(queries.queries, key)) tile_pair<T>(queries, k_right, dim, key, keys, s);
    }
  }
  for (int64_t i = 0; i < keys; ++i) {
    for_vectors(dim, [&](int64_t j, auto lanes) {
      store(args.dk + at + i * stride + j, load(s.dk + i * wide + j), lanes);
      store(args.dv + at + i * stride + j, load(s.dv + i * wide + j), lanes);
    });
  }
}

template <class T, class Word>
void key_value_head(const AttentionBackward<T>& args, int64_t instance, int64_t kv_head, Scratch<Word>& s) {
  const AttentionShape& shape = args.shape;
  const int64_t dim = shape.head_dim, wide = padded(dim), group = shape.heads / shape.kv_heads, tiles = (shape.keys + kTile - 1) / kTile;
  constexpr auto kWordBytes = static_cast<int64_t>(sizeof(Word)), kTileBytes = static_cast<int64_t>(sizeof(QueryTile<Word>));
  // Q and dO, each as left and right in pairs or once in floats, and dQ: three times 64 rows of words.
  const int64_t words = group * tiles * 3 * kTile * wide;
  auto* to = static_cast<Word*>(attention_scratch(words * kWordBytes + group * tiles * kTileBytes));
  auto* query_tiles = reinterpret_cast<QueryTile<Word>*>(to + words);
  for (int64_t i = 0; i < group * tiles; ++i) pack_query_tile(args, instance, kv_head * group + i / tiles, i % tiles, to, query_tiles[i]);

  for (int64_t key = 0; key < shape.keys; key += kTile) key_tile(args, instance, kv_head, key, query_tiles, tiles, s);

  const int64_t stride = shape.heads * dim;
  for (int64_t i = 0; i < group * tiles; ++i) {
    const QueryTile<Word>& tile = query_tiles[i];
    float* dq = args.dq + (instance * shape.keys + tile.queries.position) * stride + (kv_head * group + i / tiles) * dim;
    for (int64_t row = 0; row < tile.queries.rows; ++row) {
      for_vectors(dim, [&](int64_t j, auto lanes) { store(dq + row * stride + j, load(tile.dq + row * wide + j), lanes); });
    }
  }
}

}  // namespace

template <class T>
void attention_backward(const AttentionBackward<T>& args, int64_t begin, int64_t end) {
  Scratch<typename WordFor<T>::Type> s;
  for (int64_t unit = begin; unit < end; ++unit) key_value_head(args, unit / args.shape.kv_heads, unit % args.shape.kv_heads, s);
}

template void attention_backward<bf16>(const AttentionBackward<bf16>&, int64_t, int64_t);
template void attention_backward<float>(const AttentionBackward<float>&, int64_t, int64_t);

}  // namespace dz::kernels::DZ_SIMD
