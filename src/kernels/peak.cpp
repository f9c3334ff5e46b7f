#include "kernels/peak.h"

#include <emmintrin.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>

#include "base/check.h"
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
    case Isa::kAvx2: return {avx2::peak_loop, avx2::kPeakFlops};
    case Isa::kAvx512: break;
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

// Work is cut into more pieces than threads, so that a thread that wakes late costs a piece and not the window.
constexpr int64_t kPiecesAThread = 8;
constexpr int kWindows = 3;

double loop_seconds(const Loop& loop, int64_t turns, ThreadPool& pool) {
  const Clock::time_point begin = Clock::now();
  pool.parallel_for(kPiecesAThread * pool.threads(), [&](int64_t) { loop.run(turns); });
  return seconds_since(begin);
}

}  // namespace

double raw_peak_gflops(Isa isa, DType dtype, ThreadPool& pool, double milliseconds) {
  DZ_CHECK(dtype == DType::kBF16 || dtype == DType::kF32, "dtype", static_cast<int>(dtype));
  DZ_CHECK(cpu_has(isa), "isa", name_of(isa));
  const Loop loop = loop_of(isa, dtype);
  constexpr int64_t kTrial = 2000;
  loop.run(kTrial);  // wakes the wide units
  const Clock::time_point begin = Clock::now();
  loop.run(kTrial);
  const double turn_seconds = std::max(seconds_since(begin) / static_cast<double>(kTrial), 1e-10);
  const int64_t turns = std::max<int64_t>(1, static_cast<int64_t>(milliseconds * 1e-3 / (kWindows * kPiecesAThread) / turn_seconds));
  double best = 0;
  for (int window = 0; window < kWindows; ++window) {
    const double flops = static_cast<double>(loop.flops * turns * kPiecesAThread * pool.threads());
    best = std::max(best, flops / loop_seconds(loop, turns, pool) / 1e9);
  }
  return best;
}

double peak_gflops(DType dtype, ThreadPool& pool) { return raw_peak_gflops(active().isa, dtype, pool, 20); }

double copy_gbps(ThreadPool& pool, double milliseconds) {
  constexpr int64_t kBytes = int64_t{128} << 20;
  constexpr int64_t kPiece = int64_t{1} << 20;
  const std::unique_ptr<std::byte[]> from(new std::byte[kBytes + 64]);
  const std::unique_ptr<std::byte[]> to(new std::byte[kBytes + 64]);
  const auto aligned = [](std::byte* p) { return reinterpret_cast<__m128i*>((reinterpret_cast<uintptr_t>(p) + 63) / 64 * 64); };
  __m128i* const source = aligned(from.get());
  __m128i* const target = aligned(to.get());
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

}  // namespace dz::kernels
