#include "kernels/gemm_driver.h"

#include <cstring>

#include "base/check.h"
#include "kernels/gemm_job.h"

namespace dz::kernels {
namespace {

// Some rows: B that was packed apart would not be used again. Little work, some microseconds: waking threads costs more than they bring.
constexpr int64_t kSomeRows = 32, kLittleWork = 1 << 20;

}  // namespace

void load_tile(const float* sums, int64_t stride, int64_t rows, int64_t cols, const GemmForm& form, float* tile) {
  rows = std::min(rows, form.rows);
  cols = std::min(cols, form.cols);
  for (int64_t i = 0; i < rows; ++i) {
    std::memcpy(tile + i * form.cols, sums + i * stride, static_cast<size_t>(cols) * sizeof(float));
    std::fill(tile + i * form.cols + cols, tile + (i + 1) * form.cols, 0.0f);
  }
  std::fill(tile + rows * form.cols, tile + form.rows * form.cols, 0.0f);
}

template <class T>
void run_gemm(const GemmForm& form, const Gemm<T>& product, ThreadPool* pool) {
  if (product.m <= 0 || product.n <= 0) return;
  DZ_CHECK(product.k >= 0, "k", product.k);
  DZ_CHECK(product.out != nullptr || product.acc != nullptr, "m", product.m);
  DZ_CHECK(!product.join || (product.out == nullptr && !product.accumulate), "accumulate", product.accumulate);
  const GemmJob<T> job(form, product);
  if (takes_few(job)) {
    few_gemm(job, pool);
  } else if (product.m * product.n * product.k <= kLittleWork) {
    small_gemm(job, nullptr);
  } else if (product.m <= kSomeRows || (product.m <= kSmallRows && product.n <= kSmallCols && pool == nullptr)) {
    small_gemm(job, pool);
  } else if (form.chunk == 0) {
    held_gemm(job, pool);
  } else {
    grouped_gemm(job, pool);
  }
}

template void run_gemm(const GemmForm&, const Gemm<bf16>&, ThreadPool*);
template void run_gemm(const GemmForm&, const Gemm<float>&, ThreadPool*);

}  // namespace dz::kernels
