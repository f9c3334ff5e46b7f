// SwiGLU and the embedding look-up on sixteen lanes. No order to keep; a division and an exp2 per vector hide behind each other.
#include "kernels/simd/functions.h"
#include "kernels/simd/ops.h"
#include "kernels/simd/v16.h"

namespace dz::kernels::DZ_SIMD {

template <class T>
void swiglu_forward(const SwigluForward<T>& args, int64_t begin, int64_t end) {
  const V16 one = splat(1.0f), log2e = splat(numerics::kLog2E);
  for_vectors(end - begin, [&](int64_t j, auto lanes) {
    const int64_t i = begin + j;
    const V16 g = load(args.gate + i, lanes);
    store(args.out + i, g / (one + exp2(-g * log2e)) * load(args.up + i, lanes), lanes);
  });
}

template <class T>
void swiglu_backward(const SwigluBackward<T>& args, int64_t begin, int64_t end) {
  const V16 one = splat(1.0f), log2e = splat(numerics::kLog2E);
  for_vectors(end - begin, [&](int64_t j, auto lanes) {
    const int64_t i = begin + j;
    const V16 g = load(args.gate + i, lanes), dout = load(args.dout + i, lanes), up = load(args.up + i, lanes);
    const V16 below = one + exp2(-g * log2e), s = one / below;
    if (args.out != nullptr) store(args.out + i, g / below * up, lanes);
    store(args.dup + i, dout * (g * s), lanes);
    store(args.dgate + i, dout * up * (s * fma(g, one - s, one)), lanes);
  });
}

template <class T>
void embedding_forward(const EmbeddingForward<T>& args, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const float* row = args.table + int64_t{args.tokens[i]} * args.width;
    T* y = args.y + i * args.width;
    for_vectors(args.width, [&](int64_t j, auto lanes) { store(y + j, load(row + j, lanes), lanes); });
  }
}

template void swiglu_forward<bf16>(const SwigluForward<bf16>&, int64_t, int64_t);
template void swiglu_forward<float>(const SwigluForward<float>&, int64_t, int64_t);
template void swiglu_backward<bf16>(const SwigluBackward<bf16>&, int64_t, int64_t);
template void swiglu_backward<float>(const SwigluBackward<float>&, int64_t, int64_t);
template void embedding_forward<bf16>(const EmbeddingForward<bf16>&, int64_t, int64_t);
template void embedding_forward<float>(const EmbeddingForward<float>&, int64_t, int64_t);

}  // namespace dz::kernels::DZ_SIMD
