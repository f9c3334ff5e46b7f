#include "kernels/gemm.h"

#include "base/trace.h"
#include "kernels/table.h"

namespace dz::kernels {
namespace {

// By which operand runs along k: x * weight', dy * weight, dy' * x.
template <class T>
const char* name_of(const Gemm<T>& product) {
  if (product.a_row == 1) return "gemm dW";
  return product.b_row == 1 ? "gemm forward" : "gemm dX";
}

}  // namespace

template <class T>
void gemm(const Gemm<T>& product, ThreadPool& pool) {
  const TraceSpan span(name_of(product));
  forms<T>().gemm(product, &pool);
}

template <class T>
void gemm_serial(const Gemm<T>& product) {
  forms<T>().gemm(product, nullptr);
}

template void gemm(const Gemm<bf16>&, ThreadPool&);
template void gemm(const Gemm<float>&, ThreadPool&);
template void gemm_serial(const Gemm<bf16>&);
template void gemm_serial(const Gemm<float>&);

}  // namespace dz::kernels
