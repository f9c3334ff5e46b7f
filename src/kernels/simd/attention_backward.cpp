// Attention backward by tiles of 64 queries and 64 keys on stack scratch. Key tiles are the outer loop: dK and dV of a key tile are one chain
// over (query head, query tile) and stay in scratch, dQ gathers its key tiles in ascending order in memory.
#include "kernels/simd/attention_mask.h"
#include "kernels/simd/functions.h"
#include "kernels/simd/ops.h"
#include "kernels/simd/pack.h"
#include "kernels/simd/tile.h"

namespace dz::kernels::DZ_SIMD {
namespace {

constexpr int kKeyVectors = static_cast<int>(kTile / kLanes);

// Tiles in the layouts of tile.h; what is needed as left and as right is packed twice unless the two are the same.
template <class Word>
struct Scratch {
  alignas(64) Word q_left[kTile * kMaxHeadDim], q_right[kTile * kMaxHeadDim];
  alignas(64) Word dout_left[kTile * kMaxHeadDim], dout_right[kTile * kMaxHeadDim];
  alignas(64) Word k_left[kTile * kMaxHeadDim], k_right[kTile * kMaxHeadDim], k_columns[kMaxHeadDim * kTile];
  alignas(64) Word v_left[kTile * kMaxHeadDim], v_columns[kMaxHeadDim * kTile];
  alignas(64) Word p_right[kTile * kTile], ds_left[kTile * kTile], ds_right[kTile * kTile];
  const Word *q_rows, *dout_rows, *k_rows, *ds_rows;  // where the right layouts are
  alignas(64) float dk[kTile * kMaxHeadDim], dv[kTile * kMaxHeadDim], dq[kTile * kMaxHeadDim];
  alignas(64) float t[kTile * kTile], dp[kTile * kTile];
  float m[kTile], scale[kTile], d[kTile];
};

// The rows of one query tile and what each row needs: its maximum, 1 / l and D = row sum of dO * O.
template <class T, class Word>
DZ_INLINE void load_queries(const AttentionBackward<T>& args, const QueryRows& queries, int64_t instance, int64_t head, Scratch<Word>& s) {
  const AttentionShape& shape = args.shape;
  const int64_t stride = shape.heads * shape.head_dim;
  const int64_t at = (instance * shape.keys + queries.position) * stride + head * shape.head_dim;
  pack_left(args.q + at, stride, queries.rows, shape.head_dim, s.q_left);
  s.q_rows = pack_right_too(args.q + at, stride, queries.rows, shape.head_dim, s.q_left, s.q_right);
  pack_left(args.dout + at, stride, queries.rows, shape.head_dim, s.dout_left);
  s.dout_rows = pack_right_too(args.dout + at, stride, queries.rows, shape.head_dim, s.dout_left, s.dout_right);
  const int64_t statistics = (instance * shape.heads + head) * shape.keys + queries.position;
  for (int64_t i = 0; i < queries.rows; ++i) {
    V16 dot = zero();
    for_vectors(shape.head_dim, [&](int64_t j, auto lanes) {
      dot = fma(load(args.dout + at + i * stride + j, lanes), load(args.out + at + i * stride + j, lanes), dot);
    });
    s.d[i] = sum(dot);
    s.m[i] = args.row_max[statistics + i];
    s.scale[i] = args.row_scale[statistics + i];
  }
}

// From S and dP: P = exp2(t - m) * (1 / l) and dS = (P * (dP - D)) * scale, both rounded; rows past the end are +0, and so are keys past the
// end, which would else turn an infinite D into NaN.
template <class T, class Word>
DZ_INLINE void score_gradients(const QueryRows& queries, int64_t key, int64_t keys, AttentionScale scale, Scratch<Word>& s) {
  const V16 c16 = splat(scale.exponent), scale16 = splat(scale.gradient), hidden = splat(-numerics::kInfinity);
  T p_rows[kTile * kTile], ds_rows[kTile * kTile];
  for (int64_t i = 0; i < queries.rows; ++i) {
    const V16 m = splat(s.m[i]), l = splat(s.scale[i]), d = splat(s.d[i]);
    const bool all = sees_all(queries, i, key);
    const VisibleKeys visible = visible_keys(queries, i, key);
    for (int v = 0; v < kKeyVectors; ++v) {
      const int64_t at = i * kTile + v * kLanes;
      V16 t = load(s.t + at) * c16;
      if (!all) t = select(visible.among(v), t, hidden);
      const V16 p = exp2(t - m) * l;
      store(p_rows + at, p);
      store(ds_rows + at, p * (load(s.dp + at) - d) * scale16);
    }
  }
  pack_right(p_rows, kTile, queries.rows, kTile, s.p_right);
  pack_left(ds_rows, kTile, queries.rows, keys, s.ds_left);
  s.ds_rows = pack_right_too(ds_rows, kTile, queries.rows, keys, s.ds_left, s.ds_right);
}

// dQ of a query tile = what the key tiles before left in memory + dS K.
template <class T, class Word>
DZ_INLINE void add_dq(const AttentionBackward<T>& args, const QueryRows& queries, int64_t instance, int64_t head, int64_t keys, Scratch<Word>& s) {
  const AttentionShape& shape = args.shape;
  const int64_t stride = shape.heads * shape.head_dim, width = padded(shape.head_dim);
  float* dq = args.dq + (instance * shape.keys + queries.position) * stride + head * shape.head_dim;
  pack_left(dq, stride, queries.rows, shape.head_dim, s.dq);
  product(left(s.ds_left, keys), s.k_rows, s.dq, queries.rows, width, padded(keys), true);
  for (int64_t i = 0; i < queries.rows; ++i) {
    for_vectors(shape.head_dim, [&](int64_t j, auto lanes) { store(dq + i * stride + j, load(s.dq + i * width + j), lanes); });
  }
}

template <class T, class Word>
DZ_INLINE void tile_pair(const AttentionBackward<T>& args, const QueryRows& queries, int64_t instance, int64_t head, int64_t key, Scratch<Word>& s) {
  const int64_t dim = args.shape.head_dim, wide = padded(dim), keys = args.shape.keys - key < kTile ? args.shape.keys - key : kTile;
  load_queries(args, queries, instance, head, s);
  product(left(s.q_left, dim), s.k_columns, s.t, queries.rows, kTile, wide, false);
  product(left(s.dout_left, dim), s.v_columns, s.dp, queries.rows, kTile, wide, false);
  score_gradients<T>(queries, key, keys, attention_scale(dim), s);
  product(left_transposed(s.p_right, kTile), s.dout_rows, s.dv, keys, wide, padded(queries.rows), true);
  product(left_transposed(s.ds_rows, keys), s.q_rows, s.dk, keys, wide, padded(queries.rows), true);
  add_dq(args, queries, instance, head, keys, s);
}

template <class T, class Word>
void key_tile(const AttentionBackward<T>& args, int64_t instance, int64_t kv_head, int64_t key, Scratch<Word>& s) {
  const AttentionShape& shape = args.shape;
  const int64_t width = padded(shape.head_dim), group = shape.heads / shape.kv_heads, stride = shape.kv_heads * shape.head_dim;
  const int64_t keys = shape.keys - key < kTile ? shape.keys - key : kTile;
  const int64_t at = (instance * shape.keys + key) * stride + kv_head * shape.head_dim;
  pack_left(args.v + at, stride, keys, shape.head_dim, s.v_left);
  transpose(s.v_left, shape.head_dim, s.v_columns);
  pack_left(args.k + at, stride, keys, shape.head_dim, s.k_left);
  s.k_rows = pack_right_too(args.k + at, stride, keys, shape.head_dim, s.k_left, s.k_right);
  transpose(s.k_left, shape.head_dim, s.k_columns);
  clear(s.dk, kTile * width);
  clear(s.dv, kTile * width);

  for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    for (int64_t tile = key / kTile; tile * kTile < shape.keys; ++tile) {
      const QueryRows queries = query_rows(shape, instance, tile);
      if (sees_tile(queries, key)) tile_pair(args, queries, instance, head, key, s);
    }
  }
  for (int64_t i = 0; i < keys; ++i) {
    for_vectors(shape.head_dim, [&](int64_t j, auto lanes) {
      store(args.dk + at + i * stride + j, load(s.dk + i * width + j), lanes);
      store(args.dv + at + i * stride + j, load(s.dv + i * width + j), lanes);
    });
  }
}

}  // namespace

template <class T>
void attention_backward(const AttentionBackward<T>& args, int64_t begin, int64_t end) {
  const AttentionShape& shape = args.shape;
  const int64_t group = shape.heads / shape.kv_heads;
  Scratch<typename WordFor<T>::Type> s;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t instance = unit / shape.kv_heads, kv_head = unit % shape.kv_heads;
    for (int64_t i = 0; i < shape.keys; ++i) {
      clear(args.dq + ((instance * shape.keys + i) * shape.heads + kv_head * group) * shape.head_dim, group * shape.head_dim);
    }
    for (int64_t key = 0; key < shape.keys; key += kTile) key_tile(args, instance, kv_head, key, s);
  }
}

template void attention_backward<bf16>(const AttentionBackward<bf16>&, int64_t, int64_t);
template void attention_backward<float>(const AttentionBackward<float>&, int64_t, int64_t);

}  // namespace dz::kernels::DZ_SIMD
