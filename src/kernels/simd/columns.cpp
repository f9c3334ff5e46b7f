// Column sums over tokens: the gradients of norm weights and biases, and of the embedding. A lane is a column, so a sum keeps the order of one
// column. Blocks of 32 rows are the outer loop, so that memory is read along rows; the accumulators wait in `grad`, which changes no bit.
#include "kernels/simd/ops.h"
#include "kernels/simd/v16.h"

namespace dz::kernels::DZ_SIMD {
namespace {

#ifdef __AVX512F__
constexpr int kVectors = 4;  // two chains each, side by side to hide their latency: a quarter of 32 registers
#else
constexpr int kVectors = 2;  // half of 16
#endif

// grad += (even + odd) over `count` rows from `first`, at most a block. step(row, j, lanes, chain) extends a chain of the columns from j by one
// row. A row that fills up a block adds +0 to its chain, which turns a -0 into +0.
template <int vectors, class Lanes, class Step>
DZ_INLINE void block_sums(int64_t first, int64_t count, float* grad, int64_t j, Lanes lanes, const Step& step) {
  V16 even[vectors], odd[vectors];
  for (int v = 0; v < vectors; ++v) even[v] = odd[v] = zero();
  int64_t row = 0;
  for (; row + 2 <= count; row += 2) {
    for (int v = 0; v < vectors; ++v) even[v] = step(first + row, j + v * kLanes, lanes, even[v]);
    for (int v = 0; v < vectors; ++v) odd[v] = step(first + row + 1, j + v * kLanes, lanes, odd[v]);
  }
  if (row < count) {
    for (int v = 0; v < vectors; ++v) even[v] = step(first + row, j + v * kLanes, lanes, even[v]);
  }
  for (int v = 0; v < vectors; ++v) {
    if (count < kColumnBlock) odd[v] = odd[v] + zero();
    if (count < kColumnBlock - 1) even[v] = even[v] + zero();
    store(grad + j + v * kLanes, load(grad + j + v * kLanes, lanes) + (even[v] + odd[v]), lanes);
  }
}

// All rows, the blocks restarting at multiples of `segment`, for the columns [begin, end).
template <class Step>
DZ_INLINE void column_sums(int64_t rows, int64_t segment, float* grad, int64_t begin, int64_t end, const Step& step) {
  const int64_t period = segment > 0 ? segment : (rows > 0 ? rows : 1);
  for (int64_t start = 0; start < rows; start += period) {
    const int64_t stop = start + period < rows ? start + period : rows;
    for (int64_t block = start; block < stop; block += kColumnBlock) {
      const int64_t count = stop - block < kColumnBlock ? stop - block : kColumnBlock;
      int64_t j = begin;
      for (; j + kVectors * kLanes <= end; j += kVectors * kLanes) block_sums<kVectors>(block, count, grad, j, All{}, step);
      for (; j + kLanes <= end; j += kLanes) block_sums<1>(block, count, grad, j, All{}, step);
      if (j < end) block_sums<1>(block, count, grad, j, First{end - j}, step);
    }
  }
}

}  // namespace

void norm_weight_grad(const NormWeightGrad& args, int64_t begin, int64_t end) {
  const int64_t width = args.width;
  for (int64_t block = 0; block < args.blocks; ++block) {
    const float *even = args.chains + 2 * block * width + begin, *odd = even + width;
    float* grad = args.grad + begin;
    for_vectors(end - begin,
                [&](int64_t j, auto lanes) { store(grad + j, load(grad + j, lanes) + (load(even + j, lanes) + load(odd + j, lanes)), lanes); });
  }
}

template <class T>
void bias_grad(const BiasGrad<T>& args, int64_t begin, int64_t end) {
  column_sums(args.rows, args.segment, args.grad, begin, end,
              [&](int64_t row, int64_t j, auto lanes, V16 chain) { return chain + load(args.dy + row * args.width + j, lanes); });
}

template <class T>
void embedding_grad(const EmbeddingGrad<T>& args, int64_t begin, int64_t end) {
  for (int64_t i = 0; i < args.rows; ++i) {
    const T* dy = args.dy + i * args.width + begin;
    float* grad = args.grad + int64_t{args.tokens[i]} * args.width + begin;
    for_vectors(end - begin, [&](int64_t j, auto lanes) { store(grad + j, load(grad + j, lanes) + load(dy + j, lanes), lanes); });
  }
}

template void bias_grad<bf16>(const BiasGrad<bf16>&, int64_t, int64_t);
template void bias_grad<float>(const BiasGrad<float>&, int64_t, int64_t);
template void embedding_grad<bf16>(const EmbeddingGrad<bf16>&, int64_t, int64_t);
template void embedding_grad<float>(const EmbeddingGrad<float>&, int64_t, int64_t);

}  // namespace dz::kernels::DZ_SIMD
