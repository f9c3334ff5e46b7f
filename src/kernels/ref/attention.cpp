// Tiled causal attention in scalar code; the formulas and their order are in attention.h. Products are those of gemm.h, scratch is on the stack.
#include "kernels/attention.h"

#include <algorithm>

#include "kernels/ref/ref.h"
#include "numerics/sums.h"

namespace dz::kernels::ref {
namespace {

using numerics::round_to;
using numerics::to_float;

constexpr int64_t kTile = kAttentionTile;

// The positions [begin, end) of a tile that exist.
struct Tile {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

Tile key_tile(const AttentionShape& shape, int64_t tile) { return {tile * kTile, std::min(shape.keys, (tile + 1) * kTile)}; }

Tile query_tile(const AttentionShape& shape, int64_t tile) {
  return {std::max(shape.first_query, tile * kTile), std::min(shape.keys, (tile + 1) * kTile)};
}

// acc[i, j] = row i of a times row j of b, both of length `depth`: [rows, columns], rows kTile apart.
template <class T>
void dot_rows(const T* a, int64_t a_stride, int64_t rows, const T* b, int64_t b_stride, int64_t columns, int64_t depth, float* acc) {
  gemm<T>({.m = rows, .n = columns, .k = depth, .a = a, .a_row = a_stride, .b = b, .b_row = 1, .b_col = b_stride, .acc = acc, .acc_stride = kTile},
          nullptr);
}

// One operand of a product: element (i, j) at data[i * row + j * column].
template <class T>
struct Matrix {
  const T* data = nullptr;
  int64_t row = 0, column = 1;
};

// acc[rows, dim] += a b over `depth`, with rows of acc `stride` apart.
template <class T>
void add_product(Matrix<T> a, Matrix<T> b, int64_t rows, int64_t dim, int64_t depth, float* acc, int64_t stride) {
  Gemm<T> product{.m = rows, .n = dim, .k = depth, .a = a.data, .a_row = a.row, .a_col = a.column};
  product.b = b.data;
  product.b_row = b.row;
  product.b_col = b.column;
  product.acc = acc;
  product.acc_stride = stride;
  product.accumulate = true;
  gemm(product, nullptr);
}

// Row i of S into t = S * c, masked entries -inf.
void scale_and_mask(const AttentionShape& shape, int64_t instance, int64_t position, Tile keys, float c, float* row) {
  const int64_t first = first_visible_key(shape, instance, position);
  for (int64_t j = 0; j < keys.size(); ++j) {
    const int64_t key = keys.begin + j;
    row[j] = key < first || key > position ? -numerics::kInfinity : row[j] * c;
  }
}

// One key tile of the running softmax of a row: P from t, m and l brought up to date; returns alpha.
template <class T>
float softmax_step(const float* t, int64_t keys, T* p, float& m, float& l) {
  float peak = m;
  for (int64_t j = 0; j < keys; ++j) peak = t[j] > peak ? t[j] : peak;
  const float alpha = numerics::exp2(m - peak);
  numerics::RowSum<float> sum;
  for (int64_t j = 0; j < keys; ++j) {
    const float weight = numerics::exp2(t[j] - peak);
    sum.add(weight);
    p[j] = round_to<T>(weight);
  }
  l = l * alpha + sum.total();
  m = peak;
  return alpha;
}

template <class T>
void forward_tile(const AttentionForward<T>& args, int64_t instance, int64_t head, int64_t tile) {
  const AttentionShape& shape = args.shape;
  const int64_t dim = shape.head_dim, q_stride = shape.heads * dim, kv_stride = shape.kv_heads * dim;
  const float c = attention_scale(dim).exponent;
  const int64_t kv_head = head / (shape.heads / shape.kv_heads);
  const Tile queries = query_tile(shape, tile);
  const int64_t first_row = instance * shape.queries() + queries.begin - shape.first_query;
  float scores[kTile * kTile];
  T p[kTile * kTile];
  float o[kTile * kMaxHeadDim] = {};
  float m[kTile], l[kTile] = {};
  std::fill_n(m, kTile, numerics::kLowest);

  for (int64_t other = 0; other <= tile; ++other) {
    if (!tiles_visible(shape, instance, tile, other)) continue;
    const Tile keys = key_tile(shape, other);
    const int64_t kv_at = (instance * shape.keys + keys.begin) * kv_stride + kv_head * dim;
    dot_rows(args.q + first_row * q_stride + head * dim, q_stride, queries.size(), args.k + kv_at, kv_stride, keys.size(), dim, scores);
    for (int64_t i = 0; i < queries.size(); ++i) {
      scale_and_mask(shape, instance, queries.begin + i, keys, c, scores + i * kTile);
      const float alpha = softmax_step(scores + i * kTile, keys.size(), p + i * kTile, m[i], l[i]);
      for (int64_t d = 0; d < dim; ++d) o[i * dim + d] = o[i * dim + d] * alpha;
    }
    add_product<T>({p, kTile}, {args.v + kv_at, kv_stride}, queries.size(), dim, keys.size(), o, dim);
  }
  for (int64_t i = 0; i < queries.size(); ++i) {
    const float scale = l[i] == 0.0f ? 0.0f : 1.0f / l[i];
    T* out = args.out + (first_row + i) * q_stride + head * dim;
    for (int64_t d = 0; d < dim; ++d) out[d] = round_to<T>(o[i * dim + d] * scale + 0.0f);
    const int64_t kept = (instance * shape.heads + head) * shape.queries() + queries.begin - shape.first_query + i;
    if (args.row_max != nullptr) args.row_max[kept] = m[i] + 0.0f;
    if (args.row_scale != nullptr) args.row_scale[kept] = scale;
  }
}

template <class T>
void attention_forward(const AttentionForward<T>& args, int64_t begin, int64_t end) {
  const int64_t first_tile = args.shape.first_query / kTile;
  const int64_t tiles = (args.shape.keys - 1) / kTile - first_tile + 1;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t row = unit / tiles;
    forward_tile(args, row / args.shape.heads, row % args.shape.heads, first_tile + unit % tiles);
  }
}

// P and dS of one pair of tiles, [queries, keys] with rows kTile apart.
template <class T>
struct PairGradient {
  T p[kTile * kTile];
  T ds[kTile * kTile];
};

template <class T>
void pair_gradient(const AttentionBackward<T>& args, int64_t instance, int64_t head, Tile queries, Tile keys, PairGradient<T>& pair) {
  const AttentionShape& shape = args.shape;
  const int64_t dim = shape.head_dim, q_stride = shape.heads * dim, kv_stride = shape.kv_heads * dim;
  const AttentionScale scale = attention_scale(dim);
  const int64_t q_at = (instance * shape.keys + queries.begin) * q_stride + head * dim;
  const int64_t kv_at = (instance * shape.keys + keys.begin) * kv_stride + head / (shape.heads / shape.kv_heads) * dim;
  float scores[kTile * kTile], dp[kTile * kTile];
  dot_rows(args.q + q_at, q_stride, queries.size(), args.k + kv_at, kv_stride, keys.size(), dim, scores);
  dot_rows(args.dout + q_at, q_stride, queries.size(), args.v + kv_at, kv_stride, keys.size(), dim, dp);
  for (int64_t i = 0; i < queries.size(); ++i) {
    scale_and_mask(shape, instance, queries.begin + i, keys, scale.exponent, scores + i * kTile);
    const int64_t kept = (instance * shape.heads + head) * shape.keys + queries.begin + i;
    numerics::RowSum<float> dots;
    for (int64_t d = 0; d < dim; ++d) dots.add_product(to_float(args.dout[q_at + i * q_stride + d]), to_float(args.out[q_at + i * q_stride + d]));
    const float dot = dots.total();
    for (int64_t j = 0; j < keys.size(); ++j) {
      const float p = numerics::exp2(scores[i * kTile + j] - args.row_max[kept]) * args.row_scale[kept];
      pair.p[i * kTile + j] = round_to<T>(p);
      pair.ds[i * kTile + j] = round_to<T>((p * (dp[i * kTile + j] - dot)) * scale.gradient);
    }
  }
}

// One key tile: its dK and dV are finished, and its share is added to dQ.
template <class T>
void backward_keys(const AttentionBackward<T>& args, int64_t instance, int64_t kv_head, int64_t tile) {
  const AttentionShape& shape = args.shape;
  const int64_t dim = shape.head_dim, q_stride = shape.heads * dim, kv_stride = shape.kv_heads * dim, group = shape.heads / shape.kv_heads;
  const Tile keys = key_tile(shape, tile);
  const int64_t kv_at = (instance * shape.keys + keys.begin) * kv_stride + kv_head * dim;
  PairGradient<T> pair;
  float dv[kTile * kMaxHeadDim] = {};
  for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    for (int64_t other = tile; other * kTile < shape.keys; ++other) {
      if (!tiles_visible(shape, instance, other, tile)) continue;
      const Tile queries = query_tile(shape, other);
      const int64_t q_at = (instance * shape.keys + queries.begin) * q_stride + head * dim;
      pair_gradient(args, instance, head, queries, keys, pair);
      add_product<T>({pair.p, 1, kTile}, {args.dout + q_at, q_stride}, keys.size(), dim, queries.size(), dv, dim);
      add_product<T>({pair.ds, 1, kTile}, {args.q + q_at, q_stride}, keys.size(), dim, queries.size(), args.dk + kv_at, kv_stride);
      add_product<T>({pair.ds, kTile}, {args.k + kv_at, kv_stride}, queries.size(), dim, keys.size(), args.dq + q_at, q_stride);
    }
  }
  for (int64_t i = 0; i < keys.size(); ++i) {
    for (int64_t d = 0; d < dim; ++d) args.dv[kv_at + i * kv_stride + d] = round_to<T>(dv[i * dim + d]);
  }
}

template <class T>
void attention_backward(const AttentionBackward<T>& args, int64_t begin, int64_t end) {
  const AttentionShape& shape = args.shape;
  const int64_t dim = shape.head_dim, group = shape.heads / shape.kv_heads;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t instance = unit / shape.kv_heads, kv_head = unit % shape.kv_heads;
    for (int64_t i = instance * shape.keys; i < (instance + 1) * shape.keys; ++i) {
      std::fill_n(args.dq + (i * shape.heads + kv_head * group) * dim, group * dim, 0.0f);
      std::fill_n(args.dk + (i * shape.kv_heads + kv_head) * dim, dim, 0.0f);
    }
    for (int64_t tile = 0; tile * kTile < shape.keys; ++tile) backward_keys(args, instance, kv_head, tile);
  }
}

}  // namespace

void fill_attention(Table& table) {
  table.bf16_forms.attention_forward = attention_forward<bf16>;
  table.f32_forms.attention_forward = attention_forward<float>;
  table.bf16_forms.attention_backward = attention_backward<bf16>;
  table.f32_forms.attention_backward = attention_backward<float>;
}

}  // namespace dz::kernels::ref
