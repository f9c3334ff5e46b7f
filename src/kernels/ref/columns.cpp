// Sums over rows, one for each column: weight, bias and embedding gradients in scalar code; the order is in rows.h.
#include <algorithm>

#include "kernels/ref/ref.h"
#include "kernels/rows.h"
#include "numerics/functions.h"

namespace dz::kernels::ref {
namespace {

using numerics::to_float;

// grad = grad + (even chain + odd chain) for each 32-block of rows, blocks restarting at every segment; step(row, e) is one link of a chain.
template <class Step>
void add_column(int64_t rows, int64_t segment, float* grad, Step step) {
  if (segment <= 0) segment = std::max<int64_t>(rows, 1);
  for (int64_t begin = 0; begin < rows; begin += segment) {
    const int64_t end = std::min(rows, begin + segment);
    for (int64_t block = begin; block < end; block += kColumnBlock) {
      float chain[2] = {0.0f, 0.0f};
      for (int64_t i = 0; i < kColumnBlock; ++i) {
        float& e = chain[i % 2];
        e = block + i < end ? step(block + i, e) : e + 0.0f;  // the padding of the GEMM order
      }
      *grad = *grad + (chain[0] + chain[1]);
    }
  }
}

void norm_weight_grad(const NormWeightGrad& args, int64_t begin, int64_t end) {
  for (int64_t j = begin; j < end; ++j) {
    for (int64_t block = 0; block < args.blocks; ++block) {
      const float even = args.chains[2 * block * args.width + j], odd = args.chains[(2 * block + 1) * args.width + j];
      args.grad[j] = args.grad[j] + (even + odd);
    }
  }
}

template <class T>
void bias_grad(const BiasGrad<T>& args, int64_t begin, int64_t end) {
  for (int64_t j = begin; j < end; ++j) {
    add_column(args.rows, args.segment, args.grad + j, [&](int64_t row, float e) { return e + to_float(args.dy[row * args.width + j]); });
  }
}

template <class T>
void embedding_grad(const EmbeddingGrad<T>& args, int64_t begin, int64_t end) {
  for (int64_t i = 0; i < args.rows; ++i) {
    float* grad = args.grad + int64_t{args.tokens[i]} * args.width;
    const T* dy = args.dy + i * args.width;
    for (int64_t j = begin; j < end; ++j) grad[j] = grad[j] + to_float(dy[j]);
  }
}

template <class T>
void fill_forms(TypedForms<T>& forms) {
  forms.bias_grad = bias_grad<T>;
  forms.embedding_grad = embedding_grad<T>;
}

}  // namespace

void fill_columns(Table& table) {
  fill_forms(table.bf16_forms);
  fill_forms(table.f32_forms);
  table.norm_weight_grad = norm_weight_grad;
}

}  // namespace dz::kernels::ref
