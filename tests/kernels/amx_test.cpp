// The AMX form over emulated tiles: what this shows is that packing, indexing and configuration are right; that the instruction itself follows
// the contract is for the self-test on a CPU that has it.
#include <gtest/gtest.h>

#include <string>

#include "base/thread_pool.h"
#include "kernels/cpu.h"
#include "kernels/gemm_cases.h"
#include "kernels/gemm_driver.h"
#include "kernels/op_cases.h"

namespace dz::kernels {

namespace amx_emulated {
extern const GemmForm kGemmBf16;
void attention_forward(const AttentionForward<bf16>& args, int64_t begin, int64_t end);
void attention_backward(const AttentionBackward<bf16>& args, int64_t begin, int64_t end);
}  // namespace amx_emulated

namespace {

void emulated(const Gemm<bf16>& product, ThreadPool* pool) { run_gemm(amx_emulated::kGemmBf16, product, pool); }

// Packing is AVX-512 code and the last rounding AVX512_BF16's; a CPU with AMX has both. Elsewhere there is nothing to run.
TEST(Amx, FormEqualsScalarOverEmulatedTiles) {
  if (!cpu_features().avx512_bf16) return;
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

TEST(Amx, AttentionEqualsScalarOverEmulatedTiles) {
  if (!cpu_features().avx512_bf16) return;
  set_flush_to_zero();
  const Table& scalar = table_of(Isa::kScalar);
  Table emulated = scalar;
  emulated.bf16_forms.attention_forward = amx_emulated::attention_forward;
  emulated.bf16_forms.attention_backward = amx_emulated::attention_backward;
  int64_t cases = 0, controls = 0;
  for (const OpCase& one : op_cases(CaseSet::kFull)) {
    if (!one.op.starts_with("attention") || one.name.find("bf16") == std::string::npos) continue;
    const PreparedCase expected = one.prepare(OpFault::kNone), found = one.prepare(OpFault::kNone), faulty = one.prepare(OpFault::kSwapLanes);
    expected.run(scalar, 0, expected.units);
    for (int64_t unit = 0; unit < found.units; ++unit) found.run(emulated, unit, unit + 1);
    EXPECT_EQ(first_difference(found, expected), "") << one.name;
    found.run(emulated, 0, found.units);
    EXPECT_EQ(first_difference(found, expected), "") << one.name;
    faulty.run(emulated, 0, faulty.units);
    if (!first_difference(faulty, expected).empty()) ++controls;
    ++cases;
  }
  EXPECT_GE(cases, 24);
  EXPECT_GE(controls, 12);
}

}  // namespace
}  // namespace dz::kernels
