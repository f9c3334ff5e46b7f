// Seconds on the clock on the wall, and of processor time.
#pragma once

#include <time.h>

#include <chrono>

namespace dz {

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - last_).count(); }
  // Since construction or the lap before.
  double lap() {
    const Clock::time_point now = Clock::now();
    const double passed = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    return passed;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_ = Clock::now();
};

// Processor time of all threads of this process, which other programs on a busy machine do not lengthen.
inline double processor_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace dz
