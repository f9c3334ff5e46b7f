// Sums over rows, one for each column: weight, bias and embedding gradients in scalar code; the order is in rows.h.
#include <algorithm>

#include "kernels/ref/ref.h"
#include "kernels/rows.h"
#include "numerics/functions.h"

namespace dz::kernels::ref {
namespace {

using numerics::fma;
using numerics::to_float;

constexpr int64_t kBlock = 32;

// grad = grad + (even chain + odd chain) for each 32-block of rows, blocks restarting at every segment; step(row, e) is one link of a chain.
template <class Step>
void add_column(int64_t rows, int64_t segment, float* grad, Step step) {
  if (segment <= 0) segment = std::max<int64_t>(rows, 1);
  for (int64_t begin = 0; begin < rows; begin += segment) {
    const int64_t end = std::min(rows, begin + segment);
    for (int64_t block = begin; block < end; block += kBlock) {
      float chain[2] = {0.0f, 0.0f};
      for (int64_t i = 0; i < kBlock; ++i) {
        float& e = chain[i % 2];
        e = block + i < end ? step(block + i, e) : e + 0.0f;  // the padding of the GEMM order
      }
      *grad = *grad + (chain[0] + chain[1]);
    }
  }
}

template <class T>
void norm_weight_grad(const NormWeightGrad<T>& args, int64_t begin, int64_t end) {
  for (int64_t j = begin; j < end; ++j) {
    add_column(args.rows, args.segment, args.grad + j, [&](int64_t row, float e) {
      const int64_t at = row * args.width + j;
      const float dy = args.dy != nullptr ? to_float(args.dy[at]) : args.dy_f32[at];
      return fma(dy, to_float(args.x[at]) * args.rstd[row], e);
    });
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
  forms.norm_weight_grad = norm_weight_grad<T>;
  forms.bias_grad = bias_grad<T>;
  forms.embedding_grad = embedding_grad<T>;
}

}  // namespace

void fill_columns(Table& table) {
  fill_forms(table.bf16_forms);
  fill_forms(table.f32_forms);
}

}  // namespace dz::kernels::ref
