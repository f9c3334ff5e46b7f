#include "kernels/attention_sample.h"

#include "base/check.h"
#include "numerics/rounding.h"

namespace dz::kernels {
namespace {

// Numbers in [-1, 1): attention does not get faster or slower by their values, except that no row may be all alike.
template <class T>
std::vector<T> numbers(int64_t count, uint32_t seed) {
  std::vector<T> values(static_cast<size_t>(count));
  uint32_t state = seed * 2654435761u + 1;
  for (T& value : values) {
    state = state * 1664525u + 1013904223u;
    value = numerics::round_to<T>(static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31f);
  }
  return values;
}

}  // namespace

template <class T>
AttentionSample<T>::AttentionSample(const AttentionShape& shape) : shape_(shape) {
  DZ_CHECK(shape.first_query == 0, "first_query", shape.first_query);
  const int64_t rows = shape.instances * shape.keys, queries = rows * shape.heads * shape.head_dim, keys = rows * shape.kv_heads * shape.head_dim;
  q_ = numbers<T>(queries, 1), k_ = numbers<T>(keys, 2), v_ = numbers<T>(keys, 3), dout_ = numbers<T>(queries, 4);
  out_.resize(q_.size()), dv_.resize(v_.size()), dq_.resize(q_.size()), dk_.resize(k_.size());
  row_max_.resize(static_cast<size_t>(rows * shape.heads)), row_scale_.resize(row_max_.size());
}

template <class T>
void AttentionSample<T>::forward(ThreadPool& pool) {
  AttentionForward<T> args{.shape = shape_, .q = q_.data(), .k = k_.data(), .v = v_.data(), .out = out_.data()};
  args.row_max = row_max_.data();
  args.row_scale = row_scale_.data();
  attention_forward(args, pool);
}

template <class T>
void AttentionSample<T>::backward(ThreadPool& pool) {
  AttentionBackward<T> args{.shape = shape_, .q = q_.data(), .k = k_.data(), .v = v_.data(), .out = out_.data()};
  args.dout = dout_.data();
  args.row_max = row_max_.data();
  args.row_scale = row_scale_.data();
  args.dq = dq_.data();
  args.dk = dk_.data();
  args.dv = dv_.data();
  attention_backward(args, pool);
}

template class AttentionSample<bf16>;
template class AttentionSample<float>;

}  // namespace dz::kernels
