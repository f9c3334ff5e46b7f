// Every available form of the matrix product against the scalar one, bit for bit, and the mistakes that this comparison must notice.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/gemm_cases.h"

namespace dz::kernels {
namespace {

template <class T>
void expect_agreement(const std::vector<ThreadPool*>& pools) {
  for (const GemmCase& gemm_case : gemm_cases()) {
    const GemmCheck<T> check(gemm_case, forms<T>(table_of(Isa::kScalar)));
    for (const Isa isa : available()) {
      for (ThreadPool* pool : pools) {
        EXPECT_TRUE(check.agrees(forms<T>(table_of(isa)), pool)) << name_of(isa) << ", threads " << (pool != nullptr ? pool->threads() : 0) << ": " << to_string(gemm_case);
      }
    }
  }
}

TEST(Gemm, FormsEqualScalarForEveryThreadCount) {
  ThreadPool one(1), two(2), three(3);
  expect_agreement<bf16>({nullptr, &one, &two, &three});
  expect_agreement<float>({nullptr, &one, &two, &three});
}

constexpr int64_t kLarge = 10'000'000;

// How many of the smaller cases notice a fault. Some rightly do not: zeros stay zeros, and a short sum of bf16 products is exact in any order.
template <class T>
int64_t noticed(Isa isa, GemmFault fault, GemmValues values) {
  int64_t count = 0;
  for (const GemmCase& gemm_case : gemm_cases()) {
    if (gemm_case.values != values || gemm_case.k == 0 || gemm_case.m * gemm_case.n * gemm_case.k > kLarge) continue;
    if (!GemmCheck<T>(gemm_case, forms<T>(table_of(Isa::kScalar))).agrees(forms<T>(table_of(isa)), nullptr, fault)) ++count;
  }
  return count;
}

TEST(Gemm, ComparisonNoticesOneFlippedBitOfOneInput) {
  for (const Isa isa : available()) {
    int64_t cases = 0;
    for (const GemmCase& gemm_case : gemm_cases()) cases += gemm_case.values == GemmValues::kNormal && gemm_case.k > 0 && !gemm_case.out && gemm_case.m * gemm_case.n * gemm_case.k <= kLarge ? 1 : 0;
    EXPECT_GE(noticed<bf16>(isa, GemmFault::kFlipLastBit, GemmValues::kNormal), cases) << name_of(isa);
    EXPECT_GE(noticed<float>(isa, GemmFault::kFlipLastBit, GemmValues::kNormal), cases) << name_of(isa);
  }
}

TEST(Gemm, ComparisonNoticesTermsInTheWrongChain) {
  for (const Isa isa : available()) {
    EXPECT_GE(noticed<bf16>(isa, GemmFault::kSwapChains, GemmValues::kWide), 2) << name_of(isa);
    EXPECT_GE(noticed<float>(isa, GemmFault::kSwapChains, GemmValues::kNormal), 10) << name_of(isa);
  }
}

TEST(Gemm, ComparisonNoticesABlockThatStartsElsewhere) {
  for (const Isa isa : available()) EXPECT_GE(noticed<float>(isa, GemmFault::kShiftSegment, GemmValues::kNormal), 4) << name_of(isa);
}

}  // namespace
}  // namespace dz::kernels
