#include "kernels/attention.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/thread_pool.h"
#include "base/trace.h"
#include "kernels/attention_scratch.h"
#include "kernels/scratch.h"
#include "kernels/table.h"

namespace dz::kernels {
namespace {

constexpr double kLog2E64 = 0x1.71547652b82fep+0;

void check(const AttentionShape& shape) {
  DZ_CHECK(shape.head_dim > 0 && shape.head_dim <= kMaxHeadDim, "head_dim", shape.head_dim);
  DZ_CHECK(shape.kv_heads > 0 && shape.heads % shape.kv_heads == 0, "heads", shape.heads, "kv_heads", shape.kv_heads);
  DZ_CHECK(shape.first_query >= 0 && shape.first_query <= shape.keys && shape.window >= 0, "first_query", shape.first_query, "keys", shape.keys,
           "window", shape.window);
}

}  // namespace

void* attention_scratch(int64_t bytes) {
  thread_local Scratch scratch;
  return scratch.reserve(bytes);
}

AttentionScale attention_scale(int64_t head_dim) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(head_dim));
  return {static_cast<float>(scale * kLog2E64), static_cast<float>(scale)};
}

int64_t first_visible_key(const AttentionShape& shape, int64_t instance, int64_t position) {
  int64_t first = shape.window > 0 ? std::max<int64_t>(0, position - shape.window + 1) : 0;
  if (shape.first_visible != nullptr) first = std::max<int64_t>(first, shape.first_visible[instance * shape.keys + position]);
  return first;
}

int64_t visible_pairs(const AttentionShape& shape) {
  int64_t pairs = 0;
  for (int64_t instance = 0; instance < shape.instances; ++instance) {
    for (int64_t i = shape.first_query; i < shape.keys; ++i) pairs += std::max<int64_t>(0, i + 1 - first_visible_key(shape, instance, i));
  }
  return pairs;
}

bool tiles_visible(const AttentionShape& shape, int64_t instance, int64_t query_tile, int64_t key_tile) {
  const int64_t begin = std::max(shape.first_query, query_tile * kAttentionTile);
  const int64_t end = std::min(shape.keys, (query_tile + 1) * kAttentionTile);
  const int64_t first_key = key_tile * kAttentionTile, last_key = first_key + kAttentionTile - 1;
  for (int64_t i = begin; i < end; ++i) {
    if (first_key <= i && std::max(first_visible_key(shape, instance, i), first_key) <= std::min(i, last_key)) return true;
  }
  return false;
}

template <class T>
void attention_forward(const AttentionForward<T>& args, ThreadPool& pool) {
  const TraceSpan span("attention forward");
  const AttentionShape& shape = args.shape;
  check(shape);
  if (shape.queries() == 0) return;
  const int64_t tiles = (shape.keys - 1) / kAttentionTile - shape.first_query / kAttentionTile + 1;
  // Neighbouring tiles of a head share the packing of keys and values; later ones see more keys, which small tasks even out.
  const int64_t units = shape.instances * shape.heads * tiles;
  constexpr int64_t kGroup = 8;
  const int64_t grain = units >= kGroup * 8 * pool.threads() ? kGroup : 1;
  pool.parallel_for((units + grain - 1) / grain,
                    [&](int64_t task) { forms<T>().attention_forward(args, task * grain, std::min(units, (task + 1) * grain)); });
}

template <class T>
void attention_backward(const AttentionBackward<T>& args, ThreadPool& pool) {
  const TraceSpan span("attention backward");
  check(args.shape);
  DZ_CHECK(args.shape.first_query == 0, "first_query", args.shape.first_query);
  pool.parallel_for(args.shape.instances * args.shape.kv_heads, [&](int64_t unit) { forms<T>().attention_backward(args, unit, unit + 1); });
}

template void attention_forward(const AttentionForward<bf16>&, ThreadPool&);
template void attention_forward(const AttentionForward<float>&, ThreadPool&);
template void attention_backward(const AttentionBackward<bf16>&, ThreadPool&);
template void attention_backward(const AttentionBackward<float>&, ThreadPool&);

}  // namespace dz::kernels
