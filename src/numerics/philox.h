// Counter-based random numbers: Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3; SC 2011).
// A number is a pure function of (seed, name, index), so any thread or rank can make any element, in any order.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace dz::numerics {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key);

// One stream of numbers: key = XXH3-64 over (seed as 8 bytes little-endian, the bytes of `name`), low word first.
// `name` is a tensor's Hugging Face name or a purpose, such as "sample".
class RandomStream {
 public:
  RandomStream(uint64_t seed, std::string_view name);

  uint64_t bits(uint64_t index) const;   // counter = (low, high word of index, 0, 0); output words 1 and 0 as the high and low half
  double uniform(uint64_t index) const;  // ((bits >> 11) + 0.5) * 2^-53, in (0, 1)

  // Normal with standard deviation `std`, truncated at 3 of them: float(std * Phi^-1(Phi(-3) + u (Phi(3) - Phi(-3)))).
  float truncated_normal(uint64_t index, double std) const;
  // The same without the cut: float(std * Phi^-1(u)).
  float normal(uint64_t index, double std) const;

 private:
  PhiloxKey key_;
};

// out[i] = truncated_normal(first_index + i, std).
void fill_truncated_normal(const RandomStream& stream, double std, uint64_t first_index, std::span<float> out);

}  // namespace dz::numerics
