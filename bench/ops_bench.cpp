// Speed of every op but the matrix product on one core, beside what the core can do, measured in the same process: attention as a share of the
// multiply-add peak of its instruction, the others as a share of the copy bandwidth (each tensor counted once, read or written).
// Time is the thread's own CPU time, so that other programs do not count. usage: bench_ops_bench [part of an op's name]
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/op_cases.h"
#include "kernels/peak.h"

namespace {

using namespace dz;
using namespace dz::kernels;

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// The best of several runs; the first one warms the caches and the page tables.
double seconds_of(const PreparedCase& prepared, const Table& table) {
  prepared.run(table, 0, prepared.units);
  double best = 1e30, total = 0;
  for (int run = 0; run < 20 && (run < 3 || total < 0.25); ++run) {
    const double begin = cpu_seconds();
    prepared.run(table, 0, prepared.units);
    const double seconds = cpu_seconds() - begin;
    best = std::min(best, seconds);
    total += seconds;
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string wanted = argc > 1 ? argv[1] : "";
  ThreadPool pool(1);
  const double copy = copy_gbps(pool);
  fmt::print("copy {:.1f} GB/s, one core\n", copy);
  for (const Isa isa : available()) {
    if (isa == Isa::kScalar || isa == Isa::kAmx) continue;
    const double peak_f32 = raw_peak_gflops(isa, DType::kF32, pool, 100), peak_bf16 = raw_peak_gflops(isa, DType::kBF16, pool, 100);
    fmt::print("{}: peak {:.1f} GFLOP/s, with its bf16 instruction {:.1f}\n", name_of(isa), peak_f32, peak_bf16);
    for (const OpCase& one : op_cases(CaseSet::kBench)) {
      if (one.name.find(wanted) == std::string::npos) continue;
      const double seconds = seconds_of(one.prepare(OpFault::kNone), table_of(isa));
      if (one.flops > 0) {
        const double rate = one.flops / seconds / 1e9, peak = one.name.find(" bf16 ") == std::string::npos ? peak_f32 : peak_bf16;
        fmt::print("  {:<75} {:8.1f} GFLOP/s  {:3.0f}% of peak\n", one.name, rate, 100 * rate / peak);
      } else {
        const double rate = one.bytes / seconds / 1e9;
        fmt::print("  {:<75} {:8.1f} GB/s     {:3.0f}% of copy\n", one.name, rate, 100 * rate / copy);
      }
    }
  }
  return 0;
}
