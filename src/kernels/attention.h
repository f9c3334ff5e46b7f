// Causal attention with sliding window, grouped query heads and document masks, by tiles of 64 queries and 64 keys at absolute positions
// (docs/numerics.md, "Attention"). Never a seq x seq matrix.
//
// A query at position i sees the keys [max(first_visible[i], i - window + 1), i]. A tile pair that no row sees is skipped, forward and
// backward; every row of a query tile computes every other pair.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace dz {
class ThreadPool;
}

namespace dz::kernels {

inline constexpr int64_t kAttentionTile = 64;
inline constexpr int64_t kMaxHeadDim = 256;  // what the scratch of a unit is sized for

struct AttentionShape {
  int64_t instances = 1;
  int64_t keys = 0;         // positions with a key; queries are the positions [first_query, keys)
  int64_t first_query = 0;  // 0 in training; the cached length when decoding
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  int64_t window = 0;                      // 0: full
  const int32_t* first_visible = nullptr;  // [instances, keys]: first position of the document that a position belongs to; null: 0
  int64_t queries() const { return keys - first_query; }
};

// (query, key) pairs in which the query sees the key, of one head over all instances: what useful FLOPs are counted by.
int64_t visible_pairs(const AttentionShape& shape);

// t = S * c with c = exponent = float(scale * log2 e); dS = (p * (dP - D)) * gradient, gradient = float(scale); scale = 1 / sqrt(head_dim).
struct AttentionScale {
  float exponent = 0, gradient = 0;
};
AttentionScale attention_scale(int64_t head_dim);

// The first key that the query at `position` sees; above `position` when it sees none.
int64_t first_visible_key(const AttentionShape& shape, int64_t instance, int64_t position);
// Whether any query of the tile sees any key of the tile. Tiles are numbered from position 0.
bool tiles_visible(const AttentionShape& shape, int64_t instance, int64_t query_tile, int64_t key_tile);

// Unit: (instance, head, query tile), the tile running fastest, counted from the one that holds first_query.
// For each visible key tile ascending: S = q k^T; t = S * c, masked entries -inf; m' = max(m, t) (a NaN is passed over), m starting at the
// lowest finite float; alpha = exp2(m - m'); P = exp2(t - m'); l = l * alpha + row sum of P, two roundings; O = O * alpha; O += round(P) v.
// row_scale = l == 0 ? 0 : 1 / l (a row that sees nothing gives +0); out = round(O * row_scale + 0): the added +0 leaves no -0, so that keys
// which are masked or do not exist yet (decoding) give the same bits. row_max = m + 0 for the same reason.
template <class T>
struct AttentionForward {
  AttentionShape shape;
  const T* q = nullptr;  // [instances, queries, heads * head_dim]
  const T* k = nullptr;  // [instances, keys, kv_heads * head_dim]
  const T* v = nullptr;
  T* out = nullptr;            // [instances, queries, heads * head_dim]
  float* row_max = nullptr;    // [instances, heads, queries]: m, kept for backward; null when not needed
  float* row_scale = nullptr;  // [instances, heads, queries]: 1 / l; null when not needed
};

// Unit: (instance, kv head), the head running fastest. first_query must be 0.
// For each visible pair of tiles: t as in forward, p = exp2(t - m) * row_scale, D = row sum of fma(dout, out) over head_dim, dP = dout v^T,
// dS = round((p * (dP - D)) * gradient); dQ += dS k over key tiles ascending; dV += round(p)^T dout and dK += dS^T q over the query heads of
// the KV head ascending, inside a head over query tiles ascending. Each += is a GEMM whose K is the positions of the tile that exist.
// row_max and row_scale are forward's own, so that t - row_max is never above 0.
template <class T>
struct AttentionBackward {
  AttentionShape shape;
  const T* q = nullptr;
  const T* k = nullptr;
  const T* v = nullptr;
  const T* out = nullptr;
  const T* dout = nullptr;  // [instances, keys, heads * head_dim]
  const float* row_max = nullptr;
  const float* row_scale = nullptr;
  float* dq = nullptr;  // [instances, keys, heads * head_dim] f32: stays f32 through RoPE and QK-norm
  float* dk = nullptr;  // [instances, keys, kv_heads * head_dim] f32
  T* dv = nullptr;      // [instances, keys, kv_heads * head_dim]
};

template <class T>
void attention_forward(const AttentionForward<T>& args, ThreadPool& pool);
template <class T>
void attention_backward(const AttentionBackward<T>& args, ThreadPool& pool);

}  // namespace dz::kernels
