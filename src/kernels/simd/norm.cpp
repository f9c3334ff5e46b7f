// RMSNorm forward and backward on sixteen lanes. A row's sums are one chain a lane, so several rows run side by side to hide its latency; the
// second pass finds the rows in L1.
#include "kernels/simd/norm_gradient.h"
#include "kernels/simd/ops.h"
#include "kernels/simd/v16.h"

namespace dz::kernels::DZ_SIMD {
namespace {

constexpr int kRows = 4;

template <class T, int rows>
DZ_INLINE void forward_rows(const RmsNormForward<T>& args, int64_t row) {
  const int64_t width = args.width;
  const T* x = args.x + row * width;
  T* y = args.y + row * width;
  V16 squares[rows];
  for (int i = 0; i < rows; ++i) squares[i] = zero();
  for_vectors(width, [&](int64_t j, auto lanes) {
    for (int i = 0; i < rows; ++i) {
      const V16 value = load(x + i * width + j, lanes);
      squares[i] = fma(value, value, squares[i]);
      prefetch(x + (rows + i) * width + j);
      prefetch(y + i * width + j);
      if (args.residual != nullptr) prefetch(args.residual + (row + i) * width + j);
    }
  });

  V16 r[rows];
  for (int i = 0; i < rows; ++i) {
    const float rstd = 1.0f / sqrt(sum(squares[i]) / static_cast<float>(width) + args.eps);
    args.rstd[row + i] = rstd;
    r[i] = splat(rstd);
  }

  if (args.residual == nullptr) {
    for_vectors(width, [&](int64_t j, auto lanes) {
      const V16 weight = load(args.weight + j, lanes);
      for (int i = 0; i < rows; ++i) store(y + i * width + j, load(x + i * width + j, lanes) * r[i] * weight, lanes);
    });
    return;
  }
  const T* residual = args.residual + row * width;
  for_vectors(width, [&](int64_t j, auto lanes) {
    const V16 weight = load(args.weight + j, lanes);
    for (int i = 0; i < rows; ++i) {
      const V16 before = load(residual + i * width + j, lanes);
      store(y + i * width + j, before + load(x + i * width + j, lanes) * r[i] * weight, lanes);
    }
  });
}

}  // namespace

template <class T>
void rmsnorm_forward(const RmsNormForward<T>& args, int64_t begin, int64_t end) {
  int64_t row = begin;
  for (; row + kRows <= end; row += kRows) forward_rows<T, kRows>(args, row);
  for (; row < end; ++row) forward_rows<T, 1>(args, row);
}

template <class T>
void rmsnorm_backward(const RmsNormBackward<T>& args, int64_t begin, int64_t end) {
  const int64_t width = args.width;
  for (int64_t unit = begin; unit < end; ++unit) {
    const RowBlock block = row_block(args.rows, args.segment, unit);
    norm_backward_block(block.count, width, args.chains + 2 * unit * width, [&](int64_t i, auto rows, float* even, float* odd) {
      const int64_t row = block.first + i, at = row * width;
      norm_backward_rows<T, T, decltype(rows)::count>(args.dy + at, args.x + at, args.weight, args.rstd + row, width, args.dx + at, even, odd);
    });
  }
}

template void rmsnorm_forward<bf16>(const RmsNormForward<bf16>&, int64_t, int64_t);
template void rmsnorm_forward<float>(const RmsNormForward<float>&, int64_t, int64_t);
template void rmsnorm_backward<bf16>(const RmsNormBackward<bf16>&, int64_t, int64_t);
template void rmsnorm_backward<float>(const RmsNormBackward<float>&, int64_t, int64_t);

}  // namespace dz::kernels::DZ_SIMD
