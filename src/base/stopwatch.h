// Seconds on the clock on the wall.
#pragma once

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

}  // namespace dz
