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

struct AttentionShape {
  int64_t instances = 1;
  int64_t keys = 0;                       // positions with a key; queries are the positions [first_query, keys)
  int64_t first_query = 0;                // 0 in training; the cached length when decoding
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  int64_t window = 0;                     // 0: full
  const int32_t* first_visible = nullptr; // [instances, keys]: first position of the document that a position belongs to; null: 0
  int64_t queries() const { return keys - first_query; }
};

// Unit: (instance, head, query tile).
template <class T>
struct AttentionForward {
  AttentionShape shape;
  const T* q = nullptr;                   // [instances, queries, heads * head_dim]
  const T* k = nullptr;                   // [instances, keys, kv_heads * head_dim]
  const T* v = nullptr;
  T* out = nullptr;                       // [instances, queries, heads * head_dim]
  float* row_max = nullptr;               // [instances, heads, queries]: m, kept for backward; null when not needed
  float* row_scale = nullptr;             // [instances, heads, queries]: 1 / l
};

// Unit: (instance, kv head). first_query must be 0.
template <class T>
struct AttentionBackward {
  AttentionShape shape;
  const T* q = nullptr;
  const T* k = nullptr;
  const T* v = nullptr;
  const T* out = nullptr;
  const T* dout = nullptr;                // [instances, keys, heads * head_dim]
  const float* row_max = nullptr;
  const float* row_scale = nullptr;
  float* dq = nullptr;                    // [instances, keys, heads * head_dim] f32: stays f32 through RoPE and QK-norm
  float* dk = nullptr;                    // [instances, keys, kv_heads * head_dim] f32
  T* dv = nullptr;                        // [instances, keys, kv_heads * head_dim]
};

template <class T> void attention_forward(const AttentionForward<T>& args, ThreadPool& pool);
template <class T> void attention_backward(const AttentionBackward<T>& args, ThreadPool& pool);

}  // namespace dz::kernels
