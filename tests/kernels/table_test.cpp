// The choice of a table: what may run, and that the self-test notices a form that differs.
#include <gtest/gtest.h>

#include "base/thread_pool.h"
#include "kernels/peak.h"
#include "kernels/ref/ref.h"
#include "kernels/selftest.h"
#include "numerics/rounding.h"

namespace dz::kernels {
namespace {

TEST(Table, ScalarComesFirstAndEveryListedFormCanRun) {
  const std::vector<Isa> isas = available();
  ASSERT_FALSE(isas.empty());
  EXPECT_EQ(isas.front(), Isa::kScalar);
  for (const Isa isa : isas) {
    EXPECT_TRUE(cpu_has(isa));
    EXPECT_EQ(table_of(isa).isa, isa);
  }
}

TEST(Table, StartUpSelfTestPassesEachForm) {
  for (const Isa isa : available()) {
    const SelfTestReport report = self_test(table_of(isa), SelfTestLength::kStartUp, nullptr);
    EXPECT_TRUE(report.ok()) << name_of(isa) << ": " << report.difference;
    EXPECT_GE(report.cases, 20);
  }
}

// One plain chain instead of two, as a library might sum: right to the eye, wrong by bits.
template <class T>
void one_chain(const Gemm<T>& g, ThreadPool*) {
  for (int64_t i = 0; i < g.m; ++i) {
    for (int64_t j = 0; j < g.n; ++j) {
      float sum = g.accumulate ? g.acc[i * g.acc_stride + j] : 0.0f;
      for (int64_t k = 0; k < g.k; ++k) {
        sum = __builtin_fmaf(numerics::to_float(g.a[i * g.a_row + k * g.a_col]), numerics::to_float(g.b[k * g.b_row + j * g.b_col]), sum);
      }
      if (g.out == nullptr) {
        g.acc[i * g.acc_stride + j] = sum;
        continue;
      }
      if (g.bias != nullptr) sum = sum + g.bias[j];
      T& out = g.out[i * g.out_stride + j];
      out = numerics::round_to<T>(g.add_to_out ? numerics::to_float(out) + sum : sum);
    }
  }
}

TEST(Table, SelfTestRefusesAnotherOrderAndNamesTheCase) {
  Table wrong = table_of(Isa::kScalar);
  wrong.f32_forms.gemm = one_chain<float>;
  SelfTestReport report = self_test(wrong, SelfTestLength::kStartUp, nullptr);
  EXPECT_NE(report.difference.find("f32"), std::string::npos) << report.difference;
  wrong = table_of(Isa::kScalar);
  wrong.bf16_forms.gemm = one_chain<bf16>;
  report = self_test(wrong, SelfTestLength::kStartUp, nullptr);
  EXPECT_NE(report.difference.find("bf16"), std::string::npos) << report.difference;
}

TEST(Table, ActivateChangesTheTableInUse) {
  const Isa before = active().isa;
  for (const Isa isa : available()) {
    activate(isa);
    EXPECT_EQ(active().isa, isa);
  }
  activate(before);
}

TEST(Peak, IsPositiveAndThreadsDoNotShrinkTheWork) {
  ThreadPool pool(2);
  for (const Isa isa : available()) {
    EXPECT_GT(raw_peak_gflops(isa, DType::kF32, pool, 3), 0.1) << name_of(isa);
    EXPECT_GT(raw_peak_gflops(isa, DType::kBF16, pool, 3), 0.1) << name_of(isa);
  }
}

}  // namespace
}  // namespace dz::kernels
