// The matrix product of each form beside the raw peak of its instruction, measured in the same process right before and after (A B A).
// Shapes: a layer's forward (nt), dX (nn) and dW (tn) at 2048 x 1024 x 1024, packing included, and the small products inside attention.
// GFLOP/s of one thread by CPU time, so that a busy machine does not spoil the ratio; of several by the clock on the wall, because a thread
// that waits for another uses no CPU time.
// Usage: bench_gemm_bench [m n k]
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/gemm_cases.h"
#include "kernels/peak.h"

namespace dz::kernels {
namespace {

struct Seconds {
  double cpu = 1e9, wall = 1e9;
};

Seconds now() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  const auto wall = std::chrono::steady_clock::now().time_since_epoch();
  return {static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec), std::chrono::duration<double>(wall).count()};
}

// The best of as many rounds as fit `budget` seconds, at least three.
Seconds best_of(double budget, const std::function<void()>& work) {
  work();
  Seconds best;
  const Seconds start = now();
  for (int round = 0; round < 3 || now().wall - start.wall < budget; ++round) {
    const Seconds begin = now();
    work();
    const Seconds end = now();
    best.cpu = std::min(best.cpu, end.cpu - begin.cpu);
    best.wall = std::min(best.wall, end.wall - begin.wall);
  }
  return best;
}

template <class T>
T element(uint32_t i) {
  const uint32_t bits = 0x3e000000u + (i * 2654435761u & 0x81ff0000u);  // small, of either sign, exact in bf16
  if constexpr (sizeof(T) == 2) {
    return {static_cast<uint16_t>(bits >> 16)};
  } else {
    return std::bit_cast<float>(bits);
  }
}

template <class T>
struct Matrices {
  std::vector<T> a, b, out;
  std::vector<float> acc;
  Gemm<T> product;

  Matrices(int64_t m, int64_t n, int64_t k, GemmLayout layout) {
    for (int64_t i = 0; i < m * k; ++i) a.push_back(element<T>(static_cast<uint32_t>(i)));
    for (int64_t i = 0; i < n * k; ++i) b.push_back(element<T>(static_cast<uint32_t>(i) * 7 + 3));
    out.resize(static_cast<size_t>(m * n));
    acc.resize(static_cast<size_t>(m * n));
    product = {.m = m, .n = n, .k = k, .a = a.data(), .a_row = k, .a_col = 1, .b = b.data(), .b_row = 1, .b_col = k};
    if (layout != GemmLayout::kNT) product.b_row = n, product.b_col = 1;
    if (layout == GemmLayout::kTN) {  // dW: f32 accumulators, blocks restart at each instance
      product.a_row = 1, product.a_col = m, product.k_segment = 512;
      product.acc = acc.data(), product.acc_stride = n, product.accumulate = true;
    } else {
      product.out = out.data(), product.out_stride = n;
    }
  }
};

template <class T>
void measure(Isa isa, int64_t m, int64_t n, int64_t k, GemmLayout layout, ThreadPool* pool, double budget) {
  const DType dtype = sizeof(T) == 2 ? DType::kBF16 : DType::kF32;
  ThreadPool one(1);
  ThreadPool& threads = pool == nullptr ? one : *pool;
  Matrices<T> matrices(m, n, k, layout);
  const double before = raw_peak_gflops(isa, dtype, threads);
  // Short products are timed by the hundred: the clock of the CPU time is coarse.
  const int64_t repeats = m * n * k < 10'000'000 ? 100 : 1;
  const Seconds best = best_of(budget, [&] {
    for (int64_t i = 0; i < repeats; ++i) forms<T>(table_of(isa)).gemm(matrices.product, pool);
  });
  const double peak = std::max(before, raw_peak_gflops(isa, dtype, threads));
  const double gflop = 2e-9 * static_cast<double>(m * n * k * repeats);
  const double rate = gflop / (threads.threads() == 1 ? best.cpu : best.wall);
  constexpr const char* kLayouts[] = {"forward", "dX", "dW", "tt"};
  fmt::print("{:<12} {:<5} {:<8} {:>5} x {:>5} x {:>5}  {} thread{} {:>7.1f} GFLOP/s  peak {:>7.1f}  {:>4.0f}%   wall {:>7.1f}\n", name_of(isa),
             sizeof(T) == 2 ? "bf16" : "f32", kLayouts[static_cast<int>(layout)], m, n, k, threads.threads(), threads.threads() == 1 ? " " : "s",
             rate, peak, 100 * rate / peak, gflop / best.wall);
  std::fflush(stdout);
}

void measure_form(Isa isa, int64_t m, int64_t n, int64_t k, double budget) {
  const bool f32_is_its_own = isa != Isa::kAvx512Bf16 && isa != Isa::kAmx;
  for (const int threads : {1, static_cast<int>(std::max(1u, std::thread::hardware_concurrency()))}) {
    ThreadPool pool(threads);
    for (const GemmLayout layout : {GemmLayout::kNT, GemmLayout::kNN, GemmLayout::kTN}) {
      measure<bf16>(isa, m, n, k, layout, &pool, budget);
      if (f32_is_its_own) measure<float>(isa, m, n, k, layout, &pool, budget);
    }
  }
  measure<bf16>(isa, 64, 64, 64, GemmLayout::kNT, nullptr, 0.05);
  measure<bf16>(isa, 64, 64, 64, GemmLayout::kNN, nullptr, 0.05);
  measure<bf16>(isa, 64, 64, 24, GemmLayout::kNT, nullptr, 0.05);
}

}  // namespace
}  // namespace dz::kernels

int main(int argc, char** argv) {
  using namespace dz::kernels;
  int64_t size[3] = {2048, 1024, 1024};
  for (int i = 0; i < 3 && i + 1 < argc; ++i) size[i] = std::max(1, std::atoi(argv[i + 1]));
  dz::set_flush_to_zero();
  for (const Isa isa : available()) {
    if (isa == Isa::kScalar) continue;
    measure_form(isa, size[0], size[1], size[2], 0.4);
  }
}
