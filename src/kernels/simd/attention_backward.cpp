// Attention backward by tiles of 64 queries and 64 keys on stack scratch. Key tiles are the outer loop: dK and dV of a key tile are one chain
// over (query head, query tile) and stay in scratch, dQ gathers its key tiles in ascending order in memory.
#include "kernels/simd/attention_mask.h"
#include "kernels/simd/functions.h"
#include "kernels/simd/ops.h"
#include "kernels/simd/tile.h"

namespace dz::kernels::DZ_SIMD {
namespace {

constexpr int kKeyVectors = static_cast<int>(kTile / kLanes);

struct Scratch {
  alignas(64) float q[kTile * kMaxHeadDim];
  alignas(64) float dout[kTile * kMaxHeadDim];
  alignas(64) float k[kTile * kMaxHeadDim];
  alignas(64) float k_columns[kMaxHeadDim * kTile];
  alignas(64) float v_columns[kMaxHeadDim * kTile];
  alignas(64) float dk[kTile * kMaxHeadDim];
  alignas(64) float dv[kTile * kMaxHeadDim];
  alignas(64) float dq[kTile * kMaxHeadDim];  // values by rows on their way to columns, then dQ of a query tile
  alignas(64) float p[kTile * kTile];         // S, then P
  alignas(64) float ds[kTile * kTile];        // dP, then dS
  float m[kTile], scale[kTile], d[kTile];
};

// The rows of one query tile, widened, and what each row needs: its maximum, 1 / l and D = row sum of dO * O.
template <class T>
DZ_INLINE void load_queries(const AttentionBackward<T>& args, const QueryRows& queries, int64_t instance, int64_t head, Scratch& s) {
  const AttentionShape& shape = args.shape;
  const int64_t stride = shape.heads * shape.head_dim;
  const int64_t at = (instance * shape.keys + queries.position) * stride + head * shape.head_dim;
  widen_rows(args.q + at, stride, queries.rows, shape.head_dim, kTile, s.q);
  widen_rows(args.dout + at, stride, queries.rows, shape.head_dim, kTile, s.dout);
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
template <class T>
DZ_INLINE void score_gradients(const QueryRows& queries, int64_t key, int64_t keys, AttentionScale scale, Scratch& s) {
  const V16 c16 = splat(scale.exponent), scale16 = splat(scale.gradient), hidden = splat(-numerics::kInfinity);
  for (int64_t i = 0; i < queries.rows; ++i) {
    float* p_row = s.p + i * kTile;
    float* ds_row = s.ds + i * kTile;
    const V16 m = splat(s.m[i]), l = splat(s.scale[i]), d = splat(s.d[i]);
    const bool all = sees_all(queries, i, key);
    const VisibleKeys visible = visible_keys(queries, i, key);
    for (int v = 0; v < kKeyVectors; ++v) {
      V16 t = load(p_row + v * kLanes) * c16;
      if (!all) t = select(visible.among(v), t, hidden);
      const V16 p = exp2(t - m) * l;
      store(p_row + v * kLanes, round_as<T>(p));
      store(ds_row + v * kLanes, round_as<T>(p * (load(ds_row + v * kLanes) - d) * scale16));
    }
    if (keys < kTile) clear(ds_row + keys, kTile - keys);
  }
  clear(s.p + queries.rows * kTile, (kTile - queries.rows) * kTile);
  clear(s.ds + queries.rows * kTile, (kTile - queries.rows) * kTile);
}

// dQ of a query tile = what the key tiles before left in memory + dS K.
template <class T>
DZ_INLINE void add_dq(const AttentionBackward<T>& args, const QueryRows& queries, int64_t instance, int64_t head, int64_t keys, Scratch& s) {
  const AttentionShape& shape = args.shape;
  const int64_t stride = shape.heads * shape.head_dim, width = padded(shape.head_dim);
  float* dq = args.dq + (instance * shape.keys + queries.position) * stride + head * shape.head_dim;
  widen_rows<float>(dq, stride, queries.rows, shape.head_dim, kTile, s.dq);
  product(Left<false>{s.ds, kTile}, s.k, width, s.dq, width, queries.rows, width, keys, true);
  for (int64_t i = 0; i < queries.rows; ++i) {
    for_vectors(shape.head_dim, [&](int64_t j, auto lanes) { store(dq + i * stride + j, load(s.dq + i * width + j), lanes); });
  }
}

template <class T>
DZ_INLINE void tile_pair(const AttentionBackward<T>& args, const QueryRows& queries, int64_t instance, int64_t head, int64_t key, Scratch& s) {
  const int64_t width = padded(args.shape.head_dim), keys = args.shape.keys - key < kTile ? args.shape.keys - key : kTile;
  load_queries(args, queries, instance, head, s);
  product(Left<false>{s.q, width}, s.k_columns, kTile, s.p, kTile, queries.rows, kTile, width, false);
  product(Left<false>{s.dout, width}, s.v_columns, kTile, s.ds, kTile, queries.rows, kTile, width, false);
  score_gradients<T>(queries, key, keys, attention_scale(args.shape.head_dim), s);
  product(Left<true>{s.p, kTile}, s.dout, width, s.dv, width, keys, width, padded(queries.rows), true);
  product(Left<true>{s.ds, kTile}, s.q, width, s.dk, width, keys, width, padded(queries.rows), true);
  add_dq(args, queries, instance, head, padded(keys), s);
}

template <class T>
void key_tile(const AttentionBackward<T>& args, int64_t instance, int64_t kv_head, int64_t key, Scratch& s) {
  const AttentionShape& shape = args.shape;
  const int64_t width = padded(shape.head_dim), group = shape.heads / shape.kv_heads, stride = shape.kv_heads * shape.head_dim;
  const int64_t keys = shape.keys - key < kTile ? shape.keys - key : kTile;
  const int64_t at = (instance * shape.keys + key) * stride + kv_head * shape.head_dim;
  widen_rows(args.v + at, stride, keys, shape.head_dim, kTile, s.dq);
  transpose(s.dq, width, s.v_columns);
  widen_rows(args.k + at, stride, keys, shape.head_dim, kTile, s.k);
  transpose(s.k, width, s.k_columns);
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
  Scratch s;
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
