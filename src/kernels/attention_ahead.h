// Keys and values of the next tile, asked for before it is their turn: rows of a head lie far apart, which no prefetcher follows, and when decoding
// reading them is most of the work. Internal linkage: included by every instruction set.
#pragma once

#include <cstdint>

#include "kernels/attention.h"
#include "numerics/rounding.h"

namespace dz::kernels {
namespace {

// The tile of keys that begins at `key`, of one head, as far as its keys exist.
template <class T>
DZ_INLINE void ask_for_keys(const AttentionForward<T>& args, int64_t instance, int64_t kv_head, int64_t key) {
  const AttentionShape& shape = args.shape;
  const int64_t stride = shape.kv_heads * shape.head_dim, left = shape.keys - key, rows = left < kAttentionTile ? left : kAttentionTile;
  const int64_t at = (instance * shape.keys + key) * stride + kv_head * shape.head_dim;
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < shape.head_dim; j += kLine) {
      __builtin_prefetch(args.k + at + i * stride + j, 0, 2);
      __builtin_prefetch(args.v + at + i * stride + j, 0, 2);
    }
  }
}

}  // namespace
}  // namespace dz::kernels
