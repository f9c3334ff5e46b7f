#include "base/check.h"
#include "kernels/gemm_driver.h"

namespace dz::kernels {
namespace {

template <class T, const GemmForm& kForm>
void product_of(const Gemm<T>& product, ThreadPool* pool) {
  run_gemm(kForm, product, pool);
}

}  // namespace

void fill_gemm(Isa isa, Table& table) {
  DZ_CHECK(isa != Isa::kScalar, "isa", name_of(isa));
  table.bf16_forms.gemm = product_of<bf16, avx512::kGemmBf16>;
  table.f32_forms.gemm = product_of<float, avx512::kGemmF32>;
  if (isa == Isa::kAvx2) {
    table.bf16_forms.gemm = product_of<bf16, avx2::kGemmBf16>;
    table.f32_forms.gemm = product_of<float, avx2::kGemmF32>;
  } else if (isa == Isa::kAvx512Bf16) {
    table.bf16_forms.gemm = product_of<bf16, avx512_bf16::kGemmBf16>;
  } else if (isa == Isa::kAmx) {
    table.bf16_forms.gemm = product_of<bf16, amx::kGemmBf16>;
  }
}

}  // namespace dz::kernels
