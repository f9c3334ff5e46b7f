// A seed of any size, as NumPy and Python take them: a natural number kept as little-endian 32-bit words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dz::data {

class BigSeed {
 public:
  BigSeed(uint64_t value = 0);  // NOLINT: a plain number is a seed
  // Decimal digits only, at most 1,000 of them. UsageError naming `where` otherwise.
  static BigSeed parse(std::string_view text, const std::string& where);

  BigSeed plus(uint64_t value) const;
  std::string decimal() const;
  // Low word first, without leading zero words; the seed 0 is one word 0.
  const std::vector<uint32_t>& words() const { return words_; }
  friend bool operator==(const BigSeed&, const BigSeed&) = default;

 private:
  void multiply_add(uint32_t factor, uint32_t addend);

  std::vector<uint32_t> words_;
};

}  // namespace dz::data
