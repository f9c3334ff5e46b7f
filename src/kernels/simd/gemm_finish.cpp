// The way of a finished register tile to where it belongs: bias, residual, one rounding.
#include "kernels/gemm_form.h"
#include "kernels/simd/v16.h"

namespace dz::kernels::DZ_SIMD {
namespace {

template <class T>
DZ_INLINE void finish(const GemmStore& target, const float* tile, int64_t tile_stride, int64_t rows, int64_t cols) {
  T* out = static_cast<T*>(target.out);
  if (target.bias == nullptr && !target.add) {
    for (int64_t i = 0; i < rows; ++i, out += target.stride, tile += tile_stride) {
      for_vectors(cols, [&](int64_t j, auto lanes) { store(out + j, load(tile + j, lanes), lanes); });
    }
    return;
  }
  for (int64_t i = 0; i < rows; ++i, out += target.stride, tile += tile_stride) {
    for_vectors(cols, [&](int64_t j, auto lanes) {
      V16 x = load(tile + j, lanes);
      if (target.bias != nullptr) x = x + load(target.bias + j, lanes);
      if (target.add) x = load(out + j, lanes) + x;
      store(out + j, x, lanes);
    });
  }
}

}  // namespace

void gemm_finish_bf16(const GemmStore& target, const float* tile, int64_t tile_stride, int64_t rows, int64_t cols) {
  finish<bf16>(target, tile, tile_stride, rows, cols);
}

void gemm_finish_f32(const GemmStore& target, const float* tile, int64_t tile_stride, int64_t rows, int64_t cols) {
  finish<float>(target, tile, tile_stride, rows, cols);
}

}  // namespace dz::kernels::DZ_SIMD
