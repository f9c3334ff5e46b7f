// Attention forward by tiles of 64 queries and 64 keys on stack scratch. Scores and values are two small products in the order of the matrix
// product; between them the running maximum and sum of a row move on by one key tile.
#include "kernels/simd/attention_mask.h"
#include "kernels/simd/functions.h"
#include "kernels/simd/ops.h"
#include "kernels/simd/pack.h"
#include "kernels/simd/tile.h"

namespace dz::kernels::DZ_SIMD {
namespace {

constexpr int kKeyVectors = static_cast<int>(kTile / kLanes);

// Tiles in the layouts of tile.h.
template <class Word>
struct Scratch {
  alignas(64) Word q[kTile * kMaxHeadDim];          // left
  alignas(64) Word rows[kTile * kMaxHeadDim];       // keys on their way to columns, then values as right
  alignas(64) Word k_columns[kMaxHeadDim * kTile];  // columns
  alignas(64) Word p[kTile * kTile];                // left
  alignas(64) float o[kTile * kMaxHeadDim];
  alignas(64) float t[kTile * kTile];  // S, then t
  alignas(64) float m[kTile], l[kTile], next_m[kTile], alpha[kTile], row_sum[kTile];
};

// t = S * c with masked entries -inf, and the new maximum of each row.
template <class Word>
DZ_INLINE void scale_and_mask(Scratch<Word>& s, const QueryRows& queries, int64_t key, float c) {
  const V16 c16 = splat(c), hidden = splat(-numerics::kInfinity);
  for (int64_t i = 0; i < queries.rows; ++i) {
    float* row = s.t + i * kTile;
    V16 t[kKeyVectors];
    for (int v = 0; v < kKeyVectors; ++v) t[v] = load(row + v * kLanes) * c16;
    if (!sees_all(queries, i, key)) {
      const VisibleKeys visible = visible_keys(queries, i, key);
      for (int v = 0; v < kKeyVectors; ++v) t[v] = select(visible.among(v), t[v], hidden);
    }
    V16 m = splat(s.m[i]);
    for (int v = 0; v < kKeyVectors; ++v) {
      m = raise(m, t[v]);
      store(row + v * kLanes, t[v]);
    }
    s.next_m[i] = greatest(m);
  }
}

// P = exp2(t - m'), rounded to the compute type after its row sum; then l and O are brought to the new maximum.
template <class T, class Word>
DZ_INLINE void exponentials(Scratch<Word>& s, int64_t rows, int64_t width) {
  for (int64_t i = 0; i < rows; ++i) {
    const float* row = s.t + i * kTile;
    const V16 m = splat(s.next_m[i]);
    V16 lanes = zero();
    for (int v = 0; v < kKeyVectors; ++v) {
      const V16 p = exp2(load(row + v * kLanes) - m);
      lanes = lanes + p;
      store_left<T>(s.p, i, v, p);
    }
    s.row_sum[i] = sum(lanes);
  }
  for (int64_t i = 0; i < rows; i += kLanes) {
    const V16 next = load(s.next_m + i), alpha = exp2(load(s.m + i) - next);
    store(s.alpha + i, alpha);
    store(s.l + i, load(s.l + i) * alpha + load(s.row_sum + i));
    store(s.m + i, next);
  }
  for (int64_t i = 0; i < rows; ++i) {
    if (s.alpha[i] == 1.0f) continue;
    const V16 alpha = splat(s.alpha[i]);
    for (int64_t j = 0; j < width; j += kLanes) store(s.o + i * width + j, load(s.o + i * width + j) * alpha);
  }
}

template <class T, class Word>
DZ_INLINE void finish(const AttentionForward<T>& args, const Scratch<Word>& s, const QueryRows& queries, int64_t instance, int64_t head) {
  const AttentionShape& shape = args.shape;
  const int64_t count = shape.keys - shape.first_query, first = queries.position - shape.first_query;
  const int64_t width = padded(shape.head_dim);
  for (int64_t i = 0; i < queries.rows; ++i) {
    const float scale = s.l[i] == 0.0f ? 0.0f : 1.0f / s.l[i];
    T* out = args.out + ((instance * count + first + i) * shape.heads + head) * shape.head_dim;
    for_vectors(shape.head_dim, [&](int64_t j, auto lanes) { store(out + j, load(s.o + i * width + j) * splat(scale) + zero(), lanes); });
    const int64_t at = (instance * shape.heads + head) * count + first + i;
    if (args.row_max != nullptr) args.row_max[at] = s.m[i] + 0.0f;
    if (args.row_scale != nullptr) args.row_scale[at] = scale;
  }
}

template <class T>
void query_tile(const AttentionForward<T>& args, int64_t instance, int64_t head, int64_t tile) {
  const AttentionShape& shape = args.shape;
  const int64_t count = shape.keys - shape.first_query, width = padded(shape.head_dim);
  const int64_t kv_head = head / (shape.heads / shape.kv_heads), kv_stride = shape.kv_heads * shape.head_dim;
  const QueryRows queries = query_rows(shape, instance, tile);
  const float c = attention_scale(shape.head_dim).exponent;
  Scratch<typename WordFor<T>::Type> s;
  const T* q = args.q + ((instance * count + queries.position - shape.first_query) * shape.heads + head) * shape.head_dim;
  pack_left(q, shape.heads * shape.head_dim, queries.rows, shape.head_dim, s.q);
  clear(s.o, kTile * width);
  clear(s.p, kTile * kTile);
  for (int64_t i = 0; i < kTile; ++i) {
    s.m[i] = s.next_m[i] = numerics::kLowest;
    s.l[i] = s.row_sum[i] = 0.0f;
  }

  for (int64_t key = 0; key < queries.position + queries.rows; key += kTile) {
    if (!sees_tile(queries, key)) continue;
    const int64_t keys = shape.keys - key < kTile ? shape.keys - key : kTile;
    const int64_t at = (instance * shape.keys + key) * kv_stride + kv_head * shape.head_dim;
    pack_left(args.k + at, kv_stride, keys, shape.head_dim, s.rows);
    transpose(s.rows, shape.head_dim, s.k_columns);
    product(left(s.q, shape.head_dim), s.k_columns, s.t, queries.rows, kTile, width, false);
    scale_and_mask(s, queries, key, c);
    exponentials<T>(s, queries.rows, width);
    pack_right(args.v + at, kv_stride, keys, shape.head_dim, s.rows);
    product(left(s.p, kTile), s.rows, s.o, queries.rows, width, padded(keys), true);
  }
  finish(args, s, queries, instance, head);
}

}  // namespace

template <class T>
void attention_forward(const AttentionForward<T>& args, int64_t begin, int64_t end) {
  const AttentionShape& shape = args.shape;
  const int64_t first_tile = shape.first_query / kTile, tiles = (shape.keys + kTile - 1) / kTile - first_tile;
  for (int64_t unit = begin; unit < end; ++unit) {
    query_tile(args, unit / (tiles * shape.heads), unit / tiles % shape.heads, first_tile + unit % tiles);
  }
}

template void attention_forward<bf16>(const AttentionForward<bf16>&, int64_t, int64_t);
template void attention_forward<float>(const AttentionForward<float>&, int64_t, int64_t);

}  // namespace dz::kernels::DZ_SIMD
