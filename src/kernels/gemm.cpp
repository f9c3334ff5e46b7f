#include "kernels/gemm.h"

#include "kernels/table.h"

namespace dz::kernels {

template <class T>
void gemm(const Gemm<T>& product, ThreadPool& pool) {
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
