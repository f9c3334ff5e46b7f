// Every available form of the matrix product against the scalar one, bit for bit, and the mistakes that this comparison must notice.
#include <gtest/gtest.h>
#include <sys/mman.h>

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
        EXPECT_TRUE(check.agrees(forms<T>(table_of(isa)), pool))
            << name_of(isa) << ", threads " << (pool != nullptr ? pool->threads() : 0) << ": " << to_string(gemm_case);
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
    for (const GemmCase& gemm_case : gemm_cases())
      cases +=
          gemm_case.values == GemmValues::kNormal && gemm_case.k > 0 && !gemm_case.out && gemm_case.m * gemm_case.n * gemm_case.k <= kLarge ? 1 : 0;
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

// Rows 2^31 elements apart: an offset held in 32 bits would read elsewhere. The memory is address space only.
TEST(Gemm, StridesBeyond32Bits) {
  constexpr int64_t kStride = (int64_t{1} << 31) + 40, kRows = 3, kDepth = 40;
  constexpr size_t kBytes = ((kRows - 1) * kStride + kDepth) * sizeof(bf16);
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  bf16* a = static_cast<bf16*>(memory);
  std::vector<bf16> near(kRows * kDepth), b(kDepth);
  for (int64_t i = 0; i < kRows * kDepth; ++i) {
    near[static_cast<size_t>(i)] = {static_cast<uint16_t>(0x3f80 + i)};
    a[i / kDepth * kStride + i % kDepth] = near[static_cast<size_t>(i)];
  }
  for (bf16& x : b) x = {0x3f80};
  std::vector<float> expected(kRows), found(kRows);
  Gemm<bf16> product{
      .m = kRows, .n = 1, .k = kDepth, .a = near.data(), .a_row = kDepth, .b = b.data(), .b_col = kDepth, .acc = expected.data(), .acc_stride = 1};
  table_of(Isa::kScalar).bf16_forms.gemm(product, nullptr);
  product.a = a;
  product.a_row = kStride;
  product.acc = found.data();
  for (const Isa isa : available()) {
    table_of(isa).bf16_forms.gemm(product, nullptr);
    EXPECT_EQ(found, expected) << name_of(isa);
  }
  munmap(memory, kBytes);
}

}  // namespace
}  // namespace dz::kernels
