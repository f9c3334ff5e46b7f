// Column sums over tokens: the gradients of norm weights and biases, and of the embedding. A lane is a column, so a sum keeps the order of one
// column; four vectors side by side hide the latency of the chains and use whole cache lines of each row.
#include "kernels/simd/ops.h"
#include "kernels/simd/v16.h"

namespace dz::kernels::DZ_SIMD {
namespace {

constexpr int64_t kBlock = 32;
constexpr int kVectors = 4;

// grad += (even + odd) for each 32-row block of `rows` rows, restarting at multiples of `segment`. step(row, j, chain) extends a chain of the
// columns from j by one row. A row that fills up a block adds +0 to its chain, which turns a -0 into +0.
template <int vectors, class Lanes, class Step>
DZ_INLINE void column_sums(int64_t rows, int64_t segment, float* grad, int64_t j, Lanes lanes, const Step& step) {
  V16 total[vectors];
  for (int v = 0; v < vectors; ++v) total[v] = load(grad + j + v * kLanes, lanes);
  for (int64_t start = 0; start < rows; start += segment) {
    const int64_t stop = start + segment < rows ? start + segment : rows;
    for (int64_t block = start; block < stop; block += kBlock) {
      const int64_t count = stop - block < kBlock ? stop - block : kBlock;
      V16 even[vectors], odd[vectors];
      for (int v = 0; v < vectors; ++v) even[v] = odd[v] = zero();
      int64_t row = 0;
      for (; row + 2 <= count; row += 2) {
        for (int v = 0; v < vectors; ++v) even[v] = step(block + row, j + v * kLanes, even[v]);
        for (int v = 0; v < vectors; ++v) odd[v] = step(block + row + 1, j + v * kLanes, odd[v]);
      }
      if (row < count) {
        for (int v = 0; v < vectors; ++v) even[v] = step(block + row, j + v * kLanes, even[v]);
      }
      for (int v = 0; v < vectors; ++v) {
        if (count < kBlock) odd[v] = odd[v] + zero();
        if (count < kBlock - 1) even[v] = even[v] + zero();
        total[v] = total[v] + (even[v] + odd[v]);
      }
    }
  }
  for (int v = 0; v < vectors; ++v) store(grad + j + v * kLanes, total[v], lanes);
}

// make_step(lanes) gives the step for vectors of which those lanes exist.
template <class MakeStep>
DZ_INLINE void for_columns(int64_t rows, int64_t segment, float* grad, int64_t begin, int64_t end, const MakeStep& make_step) {
  const int64_t period = segment > 0 ? segment : (rows > 0 ? rows : 1);
  int64_t j = begin;
  for (; j + kVectors * kLanes <= end; j += kVectors * kLanes) column_sums<kVectors>(rows, period, grad, j, All{}, make_step(All{}));
  for (; j + kLanes <= end; j += kLanes) column_sums<1>(rows, period, grad, j, All{}, make_step(All{}));
  if (j < end) column_sums<1>(rows, period, grad, j, First{end - j}, make_step(First{end - j}));
}

template <class T, class Gradient>
void norm_weight_columns(const NormWeightGrad<T>& args, const Gradient* dy, int64_t begin, int64_t end) {
  for_columns(args.rows, args.segment, args.grad, begin, end, [&](auto lanes) {
    return [&, lanes](int64_t row, int64_t j, V16 chain) {
      const V16 n = load(args.x + row * args.width + j, lanes) * splat(args.rstd[row]);
      return fma(load(dy + row * args.width + j, lanes), n, chain);
    };
  });
}

}  // namespace

template <class T>
void norm_weight_grad(const NormWeightGrad<T>& args, int64_t begin, int64_t end) {
  if (args.dy_f32 != nullptr) {
    norm_weight_columns(args, args.dy_f32, begin, end);
  } else {
    norm_weight_columns(args, args.dy, begin, end);
  }
}

template <class T>
void bias_grad(const BiasGrad<T>& args, int64_t begin, int64_t end) {
  for_columns(args.rows, args.segment, args.grad, begin, end, [&](auto lanes) {
    return [&, lanes](int64_t row, int64_t j, V16 chain) { return chain + load(args.dy + row * args.width + j, lanes); };
  });
}

template <class T>
void embedding_grad(const EmbeddingGrad<T>& args, int64_t begin, int64_t end) {
  for (int64_t i = 0; i < args.rows; ++i) {
    const T* dy = args.dy + i * args.width + begin;
    float* grad = args.grad + int64_t{args.tokens[i]} * args.width + begin;
    for_vectors(end - begin, [&](int64_t j, auto lanes) { store(grad + j, load(grad + j, lanes) + load(dy + j, lanes), lanes); });
  }
}

template void norm_weight_grad<bf16>(const NormWeightGrad<bf16>&, int64_t, int64_t);
template void norm_weight_grad<float>(const NormWeightGrad<float>&, int64_t, int64_t);
template void bias_grad<bf16>(const BiasGrad<bf16>&, int64_t, int64_t);
template void bias_grad<float>(const BiasGrad<float>&, int64_t, int64_t);
template void embedding_grad<bf16>(const EmbeddingGrad<bf16>&, int64_t, int64_t);
template void embedding_grad<float>(const EmbeddingGrad<float>&, int64_t, int64_t);

}  // namespace dz::kernels::DZ_SIMD
