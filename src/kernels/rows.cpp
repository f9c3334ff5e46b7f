#include "kernels/rows.h"

#include <algorithm>

#include "base/check.h"
#include "base/trace.h"
#include "kernels/row_scratch.h"
#include "kernels/scratch.h"
#include "kernels/split.h"

namespace dz::kernels {
namespace {

constexpr int64_t kLine = 64;  // columns of a range come in multiples of it: whole vectors and whole cache lines

int64_t blocks_of(int64_t rows) { return (rows + kColumnBlock - 1) / kColumnBlock; }

}  // namespace

float* row_scratch(int64_t count) {
  thread_local Scratch scratch;
  return reinterpret_cast<float*>(scratch.reserve(count * static_cast<int64_t>(sizeof(float))));
}

int64_t row_blocks(int64_t rows, int64_t segment) {
  if (segment <= 0) return blocks_of(rows);
  return rows / segment * blocks_of(segment) + blocks_of(rows % segment);
}

RowBlock row_block(int64_t rows, int64_t segment, int64_t block) {
  if (segment <= 0 || segment > rows) segment = rows;
  const int64_t each = blocks_of(segment), start = block / each * segment, first = start + block % each * kColumnBlock;
  return {first, std::min({kColumnBlock, start + segment - first, rows - first})};
}

template <class T>
void rmsnorm_forward(const RmsNormForward<T>& args, ThreadPool& pool) {
  const TraceSpan span("rmsnorm forward");
  split_units(pool, args.rows, args.width, 1, forms<T>().rmsnorm_forward, args);
}

template <class T>
void rmsnorm_backward(const RmsNormBackward<T>& args, ThreadPool& pool) {
  const TraceSpan span("rmsnorm backward");
  split_units(pool, row_blocks(args.rows, args.segment), kColumnBlock * args.width, 1, forms<T>().rmsnorm_backward, args);
}

void norm_weight_grad(const NormWeightGrad& args, ThreadPool& pool) {
  const TraceSpan span("norm dW");
  split_units(pool, args.width, 2 * args.blocks, kLine, active().norm_weight_grad, args);
}

template <class T>
void bias_grad(const BiasGrad<T>& args, ThreadPool& pool) {
  const TraceSpan span("bias gradient");
  split_units(pool, args.width, args.rows, kLine, forms<T>().bias_grad, args);
}

template <class T>
void qk_norm_rope_forward(const QkNormRopeForward<T>& args, ThreadPool& pool) {
  const TraceSpan span("qk-norm rope forward");
  DZ_CHECK(args.head_dim % 2 == 0 && (args.rows == 0 || args.positions > 0), "head_dim", args.head_dim, "positions", args.positions);
  split_units(pool, args.rows, args.heads * args.head_dim, 1, forms<T>().qk_norm_rope_forward, args);
}

template <class T>
void qk_norm_rope_backward(const QkNormRopeBackward<T>& args, ThreadPool& pool) {
  const TraceSpan span("qk-norm rope backward");
  DZ_CHECK(args.head_dim % 2 == 0 && (args.rows == 0 || args.positions > 0), "head_dim", args.head_dim, "positions", args.positions);
  split_units(pool, row_blocks(args.rows, args.positions), kColumnBlock * args.heads * args.head_dim, 1, forms<T>().qk_norm_rope_backward, args);
}

template <class T>
void swiglu_forward(const SwigluForward<T>& args, ThreadPool& pool) {
  const TraceSpan span("swiglu forward");
  split_units(pool, args.count, 1, kLine, forms<T>().swiglu_forward, args);
}

template <class T>
void swiglu_backward(const SwigluBackward<T>& args, ThreadPool& pool) {
  const TraceSpan span("swiglu backward");
  split_units(pool, args.count, 1, kLine, forms<T>().swiglu_backward, args);
}

template <class T>
void embedding_forward(const EmbeddingForward<T>& args, ThreadPool& pool) {
  const TraceSpan span("embedding forward");
  split_units(pool, args.rows, args.width, 1, forms<T>().embedding_forward, args);
}

template <class T>
void embedding_grad(const EmbeddingGrad<T>& args, ThreadPool& pool) {
  const TraceSpan span("embedding gradient");
  split_units(pool, args.width, args.rows, kLine, forms<T>().embedding_grad, args);
}

template void rmsnorm_forward(const RmsNormForward<bf16>&, ThreadPool&);
template void rmsnorm_forward(const RmsNormForward<float>&, ThreadPool&);
template void rmsnorm_backward(const RmsNormBackward<bf16>&, ThreadPool&);
template void rmsnorm_backward(const RmsNormBackward<float>&, ThreadPool&);
template void bias_grad(const BiasGrad<bf16>&, ThreadPool&);
template void bias_grad(const BiasGrad<float>&, ThreadPool&);
template void qk_norm_rope_forward(const QkNormRopeForward<bf16>&, ThreadPool&);
template void qk_norm_rope_forward(const QkNormRopeForward<float>&, ThreadPool&);
template void qk_norm_rope_backward(const QkNormRopeBackward<bf16>&, ThreadPool&);
template void qk_norm_rope_backward(const QkNormRopeBackward<float>&, ThreadPool&);
template void swiglu_forward(const SwigluForward<bf16>&, ThreadPool&);
template void swiglu_forward(const SwigluForward<float>&, ThreadPool&);
template void swiglu_backward(const SwigluBackward<bf16>&, ThreadPool&);
template void swiglu_backward(const SwigluBackward<float>&, ThreadPool&);
template void embedding_forward(const EmbeddingForward<bf16>&, ThreadPool&);
template void embedding_forward(const EmbeddingForward<float>&, ThreadPool&);
template void embedding_grad(const EmbeddingGrad<bf16>&, ThreadPool&);
template void embedding_grad(const EmbeddingGrad<float>&, ThreadPool&);

}  // namespace dz::kernels
