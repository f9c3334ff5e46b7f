#include "data/big_seed.h"

#include <algorithm>

#include "base/error.h"

namespace dz::data {
namespace {

constexpr size_t kMostDigits = 1000;

}  // namespace

BigSeed::BigSeed(uint64_t value) : words_{static_cast<uint32_t>(value)} {
  if (value >> 32 != 0) words_.push_back(static_cast<uint32_t>(value >> 32));
}

BigSeed BigSeed::parse(std::string_view text, const std::string& where) {
  const bool digits = std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (text.empty() || !digits || text.size() > kMostDigits) {
    throw UsageError(Complaint{.where = where,
                               .found = "'" + std::string(text.substr(0, 60)) + "'",
                               .expected = "a natural number in decimal digits",
                               .hint = text.size() > kMostDigits ? "at most 1000 digits" : ""});
  }
  BigSeed seed;
  for (const char c : text) seed.multiply_add(10, static_cast<uint32_t>(c - '0'));
  return seed;
}

void BigSeed::multiply_add(uint32_t factor, uint32_t addend) {
  uint64_t carry = addend;
  for (uint32_t& word : words_) {
    carry += uint64_t{word} * factor;
    word = static_cast<uint32_t>(carry);
    carry >>= 32;
  }
  if (carry != 0) words_.push_back(static_cast<uint32_t>(carry));
}

BigSeed BigSeed::plus(uint64_t value) const {
  BigSeed sum = *this;
  uint64_t carry = 0;
  for (size_t i = 0; value != 0 || carry != 0; ++i, value >>= 32) {
    if (i == sum.words_.size()) sum.words_.push_back(0);
    carry += sum.words_[i] + (value & 0xffffffff);
    sum.words_[i] = static_cast<uint32_t>(carry);
    carry >>= 32;
  }
  return sum;
}

std::string BigSeed::decimal() const {
  std::vector<uint32_t> left = words_;
  std::string digits;
  do {
    uint64_t rest = 0;
    for (size_t i = left.size(); i-- > 0;) {
      rest = (rest << 32) | left[i];
      left[i] = static_cast<uint32_t>(rest / 10);
      rest %= 10;
    }
    digits.push_back(static_cast<char>('0' + rest));
    while (!left.empty() && left.back() == 0) left.pop_back();
  } while (!left.empty());
  std::reverse(digits.begin(), digits.end());
  return digits;
}

}  // namespace dz::data
