#include "kernels/selftest.h"

#include <immintrin.h>

#include "base/thread_pool.h"
#include "kernels/gemm_cases.h"
#include "kernels/selftest_ops.h"

namespace dz::kernels {
namespace {

// Computing threads flush denormals; a caller that does not is left as it was.
class FlushHere {
 public:
  FlushHere() : before_(_mm_getcsr()) { set_flush_to_zero(); }
  ~FlushHere() { _mm_setcsr(before_); }
  FlushHere(const FlushHere&) = delete;
  FlushHere& operator=(const FlushHere&) = delete;

 private:
  unsigned before_;
};

template <class T>
void test_gemm(const Table& form, const Table& scalar, SelfTestLength length, ThreadPool* pool, const char* type, SelfTestReport& report) {
  for (const GemmCase& gemm_case : gemm_cases()) {
    if (!report.ok()) return;
    if (length == SelfTestLength::kStartUp && !gemm_case.quick) continue;
    ++report.cases;
    if (!GemmCheck<T>(gemm_case, forms<T>(scalar)).agrees(forms<T>(form), pool)) report.difference = to_string(gemm_case) + " " + type;
  }
}

}  // namespace

SelfTestReport self_test(const Table& form, SelfTestLength length, ThreadPool* pool) {
  const FlushHere flush;
  const Table& scalar = table_of(Isa::kScalar);
  SelfTestReport report;
  test_gemm<bf16>(form, scalar, length, pool, "bf16", report);
  test_gemm<float>(form, scalar, length, pool, "f32", report);
  if (report.ok()) ops_agree(form, scalar, length == SelfTestLength::kStartUp ? CaseSet::kQuick : CaseSet::kFull, &report.difference, &report.cases);
  return report;
}

}  // namespace dz::kernels
