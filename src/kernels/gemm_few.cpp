// Products of few rows with a weight whose rows are read as they lie in memory: decoding, where reading the weights is all that takes time.
#include <algorithm>
#include <functional>

#include "base/thread_pool.h"
#include "kernels/gemm_job.h"
#include "kernels/scratch.h"

namespace dz::kernels {
namespace {

// Of B. A core reads some 10 bytes a nanosecond, so that a second thread, which takes some microseconds to come, pays from here on.
constexpr int64_t kBytesWorthThreads = int64_t{256} << 10;
// Of B, about, for one task: its first lines are asked for by nobody and come late, and threads of unequal speed still even out.
constexpr int64_t kTaskBytes = int64_t{1} << 20;
// How far ahead lines are asked for: two calls when a call reads less than this (16 rows, 24 KiB of bf16 at a width of 768), else one, so that
// what waits stays a fraction of L2. Of calls of 24 KiB, one ahead was 2% slower than two, four 3% faster (noise), none 20% slower.
constexpr int64_t kBytesAhead = int64_t{96} << 10;

// `rows` rows of what remains of k behind the last whole block, extended with +0 to [rows][32].
template <class T>
void copy_edge(const T* source, int64_t stride, int64_t rows, int64_t depth, T* edge) {
  std::fill_n(edge, rows * kGemmBlock, T{});
  for (int64_t i = 0; i < rows; ++i) std::copy_n(source + i * stride, depth, edge + i * kGemmBlock);
}

template <class T>
class FewRows {
 public:
  FewRows(const GemmJob<T>& job, std::byte* packed)
      : job_(job),
        product_(job.product),
        few_(job.form.few),
        packed_(packed),
        blocks_(product_.k / kGemmBlock),
        depth_(product_.k % kGemmBlock),
        groups_(pieces(product_.n, few_.cols)),
        ahead_(few_.cols * product_.k * static_cast<int64_t>(sizeof(T)) < kBytesAhead ? 2 : 1) {
    T edge[kMaxPackLanes * kGemmBlock];
    if (depth_ > 0) copy_edge(product_.a + blocks_ * kGemmBlock, product_.a_row, product_.m, depth_, edge);
    few_.pack(product_.a, product_.a_row, product_.m, blocks_, depth_ > 0 ? edge : nullptr, packed_);
  }

  void run(ThreadPool* pool) const {
    const int64_t bytes = product_.n * product_.k * static_cast<int64_t>(sizeof(T));
    if (pool == nullptr || pool->threads() == 1 || bytes < kBytesWorthThreads) return columns(0, groups_);
    const int64_t tasks = std::min(round_up(pieces(bytes, kTaskBytes), pool->threads()), groups_);
    pool->parallel_for(tasks, [&](int64_t i) { columns(i * groups_ / tasks, (i + 1) * groups_ / tasks); });
  }

 private:
  // Groups of columns [begin, end). The last group ends with the last column, so it may begin among those of the one before.
  void columns(int64_t begin, int64_t end) const {
    const FormInUse in_use(job_.form);
    alignas(64) float tile[kMaxPackLanes * kMaxPackLanes];
    T edge[kMaxPackLanes * kGemmBlock];
    for (int64_t group = begin; group < end; ++group) {
      const int64_t col = group * few_.cols, from = std::min(col, product_.n - few_.cols);
      const T* b = product_.b + from * product_.b_col;
      if (depth_ > 0) copy_edge(b + blocks_ * kGemmBlock, product_.b_col, few_.cols, depth_, edge);
      const T* ahead = group + ahead_ < end ? b + ahead_ * few_.cols * product_.b_col : nullptr;
      few_.multiply(packed_, product_.m, b, product_.b_col, blocks_, depth_ > 0 ? edge : nullptr, reinterpret_cast<const char*>(ahead), tile);
      finish(col, tile + (col - from), few_.cols - (col - from));
    }
  }

  void finish(int64_t col, const float* tile, int64_t cols) const {
    if (product_.out == nullptr) {
      job_.form.keep({.out = product_.acc + col, .stride = product_.acc_stride, .add = product_.join}, tile, few_.cols, product_.m, cols);
      return;
    }
    const float* bias = product_.bias == nullptr ? nullptr : product_.bias + col;
    job_.form.finish({.out = product_.out + col, .stride = product_.out_stride, .bias = bias, .add = product_.add_to_out}, tile, few_.cols,
                     product_.m, cols);
  }

  const GemmJob<T>& job_;
  const Gemm<T>& product_;
  const GemmFew& few_;
  std::byte* const packed_;
  const int64_t blocks_, depth_, groups_, ahead_;  // whole 32-blocks, k behind them, calls, and how many of them ahead
};

}  // namespace

template <class T>
bool takes_few(const GemmJob<T>& job) {
  const Gemm<T>& product = job.product;
  const GemmFew& few = job.form.few;
  return product.m <= few.rows && product.n >= few.cols && product.a_col == 1 && product.b_row == 1 && !product.accumulate &&
         job.map.segment >= product.k;
}

template <class T>
void few_gemm(const GemmJob<T>& job, ThreadPool* pool) {
  thread_local Scratch scratch;
  const GemmFew& few = job.form.few;
  const FewRows<T> few_rows(job, scratch.reserve(pieces(job.product.k, kGemmBlock) * few.rows * few.row_bytes));
  few_rows.run(pool);
}

template bool takes_few(const GemmJob<bf16>&);
template bool takes_few(const GemmJob<float>&);
template void few_gemm(const GemmJob<bf16>&, ThreadPool*);
template void few_gemm(const GemmJob<float>&, ThreadPool*);

}  // namespace dz::kernels
