#include "kernels/peak.h"

#include <emmintrin.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/large_memory.h"
#include "base/thread_pool.h"
#include "kernels/peak_loops.h"

namespace dz::kernels {
namespace {

struct Loop {
  void (*run)(int64_t turns);
  int64_t flops;  // of one turn
};

Loop loop_of(Isa isa, DType dtype) {
  switch (isa) {
    case Isa::kScalar:
    case Isa::kAvx2:
      return {avx2::peak_loop, avx2::kPeakFlops};
    case Isa::kAvx512:
      break;
    case Isa::kAvx512Bf16:
      if (dtype == DType::kBF16) return {avx512_bf16::peak_loop, avx512_bf16::kPeakFlops};
      break;
    case Isa::kAmx:
      if (dtype == DType::kBF16) return {amx::peak_loop, amx::kPeakFlops};
      break;
  }
  return {avx512::peak_loop, avx512::kPeakFlops};
}

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Of the calling thread on a core: another program's share of the core must not pass for a slow machine.
double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double seconds_of(const Loop& loop, int64_t turns) {
  const double begin = cpu_seconds();
  loop.run(turns);
  return std::max(cpu_seconds() - begin, 1e-9);
}

int64_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : std::numeric_limits<int64_t>::max();
}

constexpr int64_t kPiecesAThread = 4;
constexpr int kWindows = 3;

}  // namespace

double raw_peak_gflops(Isa isa, DType dtype, ThreadPool& pool, double milliseconds) {
  DZ_CHECK(dtype == DType::kBF16 || dtype == DType::kF32, "dtype", static_cast<int>(dtype));
  DZ_CHECK(cpu_has(isa), "isa", name_of(isa));
  const Loop loop = loop_of(isa, dtype);
  constexpr int64_t kTrial = 2000;
  loop.run(kTrial);  // wakes the wide units
  const double turn_seconds = seconds_of(loop, kTrial) / static_cast<double>(kTrial);
  const int64_t turns = std::max<int64_t>(1, static_cast<int64_t>(milliseconds * 1e-3 / (kWindows * kPiecesAThread) / turn_seconds));
  const int64_t pieces = kPiecesAThread * pool.threads();
  std::vector<double> seconds(static_cast<size_t>(pieces));
  double best = 0;
  for (int window = 0; window < kWindows; ++window) {
    // All threads at once: siblings share a core's units, and many busy cores run at a lower clock.
    pool.parallel_for(pieces, [&](int64_t piece) { seconds[static_cast<size_t>(piece)] = seconds_of(loop, turns); });
    double sum = 0;
    for (const double piece : seconds) sum += piece;
    best = std::max(best, static_cast<double>(loop.flops * turns * pieces) / sum / 1e9);
  }
  return best * static_cast<double>(std::min<int64_t>(pool.threads(), usable_cores()));
}

double peak_gflops(DType dtype, ThreadPool& pool) { return raw_peak_gflops(active().isa, dtype, pool, 20); }

double copy_gbps(ThreadPool& pool, double milliseconds) {
  constexpr int64_t kBytes = int64_t{128} << 20;
  constexpr int64_t kPiece = int64_t{1} << 20;
  const std::unique_ptr<void, decltype(&free_large)> from(allocate_large(kBytes), free_large), to(allocate_large(kBytes), free_large);
  auto* const source = static_cast<__m128i*>(from.get());
  auto* const target = static_cast<__m128i*>(to.get());
  pool.parallel_for(kBytes / kPiece, [&](int64_t piece) {  // touches each page once, outside the measurement
    std::memset(source + piece * (kPiece / 16), 1, kPiece);
    std::memset(target + piece * (kPiece / 16), 2, kPiece);
  });
  const Clock::time_point begin = Clock::now();
  double best = 0;
  do {
    const Clock::time_point window = Clock::now();
    pool.parallel_for(kBytes / kPiece, [&](int64_t piece) {
      const __m128i* x = source + piece * (kPiece / 16);
      __m128i* y = target + piece * (kPiece / 16);
      for (int64_t i = 0; i < kPiece / 16; i += 4) {
        for (int64_t j = 0; j < 4; ++j) _mm_stream_si128(y + i + j, _mm_load_si128(x + i + j));
      }
      _mm_sfence();
    });
    best = std::max(best, 2.0 * static_cast<double>(kBytes) / seconds_since(window) / 1e9);
  } while (seconds_since(begin) < milliseconds * 1e-3);
  return best;
}

double read_gbps(ThreadPool& pool, double milliseconds) {
  constexpr int64_t kWords = (int64_t{256} << 20) / 8, kPiece = (int64_t{1} << 20) / 8;
  LargeVector<uint64_t> memory(kWords, 1);  // on huge pages, as the weights are
  std::vector<uint64_t> sums(kWords / kPiece);
  const Clock::time_point begin = Clock::now();
  double best = 0;
  do {
    const Clock::time_point window = Clock::now();
    pool.parallel_for(kWords / kPiece, [&](int64_t piece) {
      const auto* x = reinterpret_cast<const __m128i*>(memory.data() + piece * kPiece);
      __m128i sum[4] = {};
      for (int64_t i = 0; i < kPiece / 2; i += 4) {
        for (int64_t j = 0; j < 4; ++j) sum[j] = _mm_add_epi64(sum[j], _mm_loadu_si128(x + i + j));
      }
      const __m128i all = _mm_add_epi64(_mm_add_epi64(sum[0], sum[1]), _mm_add_epi64(sum[2], sum[3]));
      sums[static_cast<size_t>(piece)] =
          static_cast<uint64_t>(_mm_cvtsi128_si64(all)) + static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_unpackhi_epi64(all, all)));
    });
    best = std::max(best, static_cast<double>(kWords * 8) / seconds_since(window) / 1e9);
  } while (seconds_since(begin) < milliseconds * 1e-3);
  uint64_t read = 0;
  for (const uint64_t sum : sums) read += sum;
  DZ_CHECK(read == kWords, "read", read);
  return best;
}

}  // namespace dz::kernels
