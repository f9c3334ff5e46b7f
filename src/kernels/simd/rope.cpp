// QK-norm and RoPE on sixteen lanes. The norm's sums run over whole rows; the rotation pairs element j of a head with j + head_dim / 2, so its
// vectors start at each half and the last one of a half is masked when head_dim / 2 is not a multiple of 16.
#include "kernels/row_scratch.h"
#include "kernels/simd/norm_gradient.h"
#include "kernels/simd/ops.h"
#include "kernels/simd/v16.h"

namespace dz::kernels::DZ_SIMD {
namespace {

constexpr int kRows = 4;

template <class T, int rows>
DZ_INLINE void forward_rows(const QkNormRopeForward<T>& args, int64_t row) {
  const int64_t width = args.heads * args.head_dim, half = args.head_dim / 2;
  V16 squares[rows];
  for (int i = 0; i < rows; ++i) squares[i] = zero();
  for_vectors(width, [&](int64_t j, auto lanes) {
    for (int i = 0; i < rows; ++i) {
      const V16 value = load(args.x + (row + i) * width + j, lanes);
      squares[i] = fma(value, value, squares[i]);
    }
  });

  for (int i = 0; i < rows; ++i) {
    const float rstd = 1.0f / sqrt(sum(squares[i]) / static_cast<float>(width) + args.eps);
    args.rstd[row + i] = rstd;
    const V16 r = splat(rstd);
    const int64_t position = args.first_position + (row + i) % args.positions;
    for (int64_t head = 0; head < args.heads; ++head) {
      const T* x = args.x + (row + i) * width + head * args.head_dim;
      const float* weight = args.weight + head * args.head_dim;
      T* y = args.y + (row + i) * width + head * args.head_dim;
      for_vectors(half, [&](int64_t j, auto lanes) {
        const V16 cos = load(args.cos + position * half + j, lanes), sin = load(args.sin + position * half + j, lanes);
        const V16 low = load(x + j, lanes) * r * load(weight + j, lanes);
        const V16 high = load(x + half + j, lanes) * r * load(weight + half + j, lanes);
        store(y + j, fma(-high, sin, low * cos), lanes);
        store(y + half + j, fma(low, sin, high * cos), lanes);
      });
    }
  }
}

// dy of one row, turned back.
template <class T>
DZ_INLINE void undo_rope(const QkNormRopeBackward<T>& args, int64_t row, float* turned) {
  const int64_t half = args.head_dim / 2, position = row % args.positions;
  for (int64_t head = 0; head < args.heads; ++head) {
    const float* dy = args.dy + (row * args.heads + head) * args.head_dim;
    float* d = turned + head * args.head_dim;
    for_vectors(half, [&](int64_t j, auto lanes) {
      const V16 cos = load(args.cos + position * half + j, lanes), sin = load(args.sin + position * half + j, lanes);
      const V16 low = load(dy + j, lanes), high = load(dy + half + j, lanes);
      prefetch(dy + kNormRows * args.heads * args.head_dim + j);
      prefetch(dy + kNormRows * args.heads * args.head_dim + half + j);
      store(d + j, fma(high, sin, low * cos), lanes);
      store(d + half + j, fma(-low, sin, high * cos), lanes);
    });
  }
}

}  // namespace

template <class T>
void qk_norm_rope_forward(const QkNormRopeForward<T>& args, int64_t begin, int64_t end) {
  int64_t row = begin;
  for (; row + kRows <= end; row += kRows) forward_rows<T, kRows>(args, row);
  for (; row < end; ++row) forward_rows<T, 1>(args, row);
}

template <class T>
void qk_norm_rope_backward(const QkNormRopeBackward<T>& args, int64_t begin, int64_t end) {
  const int64_t width = args.heads * args.head_dim;
  float* d = row_scratch(kNormRows * width);
  for (int64_t unit = begin; unit < end; ++unit) {
    const RowBlock block = row_block(args.rows, args.positions, unit);
    norm_backward_block(block.count, width, args.chains + 2 * unit * width, [&](int64_t i, auto rows, float* even, float* odd) {
      const int64_t row = block.first + i, at = row * width;
      for (int k = 0; k < decltype(rows)::count; ++k) undo_rope(args, row + k, d + k * width);
      norm_backward_rows<float, T, decltype(rows)::count>(d, args.x + at, args.weight, args.rstd + row, width, args.dx + at, even, odd);
    });
  }
}

template void qk_norm_rope_forward<bf16>(const QkNormRopeForward<bf16>&, int64_t, int64_t);
template void qk_norm_rope_forward<float>(const QkNormRopeForward<float>&, int64_t, int64_t);
template void qk_norm_rope_backward<bf16>(const QkNormRopeBackward<bf16>&, int64_t, int64_t);
template void qk_norm_rope_backward<float>(const QkNormRopeBackward<float>&, int64_t, int64_t);

}  // namespace dz::kernels::DZ_SIMD
