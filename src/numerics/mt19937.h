// MT19937 (M. Matsumoto, T. Nishimura: Mersenne Twister, ACM TOMACS 8, 1998), the generator under Python's and torch's random numbers.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace dz::numerics {

class Mt19937 {
 public:
  explicit Mt19937(uint32_t seed);                  // as torch and std::mt19937 seed it
  explicit Mt19937(std::span<const uint32_t> key);  // as Python seeds it; at least one word

  uint32_t next() {
    if (next_ == state_.size()) refill();
    uint32_t value = state_[next_++];
    value ^= value >> 11;
    value ^= (value << 7) & 0x9d2c5680u;
    value ^= (value << 15) & 0xefc60000u;
    return value ^ (value >> 18);
  }
  void skip(int64_t count);  // as many next(), faster

 private:
  void refill();

  std::array<uint32_t, 624> state_{};
  size_t next_ = 0;
};

}  // namespace dz::numerics
