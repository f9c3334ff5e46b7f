// The AMX form over emulated tiles: what this shows is that packing, indexing and configuration are right; that the instruction itself follows
// the contract is for the self-test on a CPU that has it.
#include <gtest/gtest.h>

#include "base/thread_pool.h"
#include "kernels/cpu.h"
#include "kernels/gemm_cases.h"
#include "kernels/gemm_driver.h"

namespace dz::kernels {

namespace amx_emulated {
extern const GemmForm kGemmBf16;
}

namespace {

void emulated(const Gemm<bf16>& product, ThreadPool* pool) { run_gemm(amx_emulated::kGemmBf16, product, pool); }

// Packing is AVX-512 code; a CPU with AMX has it. Elsewhere there is nothing to run.
TEST(Amx, FormEqualsScalarOverEmulatedTiles) {
  if (!cpu_features().avx512) return;
  TypedForms<bf16> form;
  form.gemm = emulated;
  ThreadPool pool(2);
  int64_t controls = 0;
  for (const GemmCase& gemm_case : gemm_cases()) {
    if (gemm_case.m * gemm_case.n * gemm_case.k > 20'000'000) continue;
    const GemmCheck<bf16> check(gemm_case, forms<bf16>(table_of(Isa::kScalar)));
    EXPECT_TRUE(check.agrees(form, nullptr)) << to_string(gemm_case);
    EXPECT_TRUE(check.agrees(form, &pool)) << to_string(gemm_case);
    if (!check.agrees(form, nullptr, GemmFault::kFlipLastBit)) ++controls;
  }
  EXPECT_GE(controls, 15);
}

}  // namespace
}  // namespace dz::kernels
