#include "data/keyed_permutation.h"

#include <fmt/format.h>

#include "base/check.h"

namespace dz::data {
namespace {

constexpr int kRounds = 10;

}  // namespace

KeyedPermutation::KeyedPermutation(int64_t size, uint64_t seed, int64_t epoch) : size_(size) {
  DZ_CHECK(size >= 1 && size <= int64_t{1} << 60, "size", size);
  while ((int64_t{1} << (2 * half_bits_)) < size) ++half_bits_;
  for (int round = 0; round < kRounds; ++round) rounds_.emplace_back(seed, fmt::format("data order, epoch {}, round {}", epoch, round));
}

uint64_t KeyedPermutation::scramble(uint64_t value) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_, right = value & mask;
  for (const numerics::RandomStream& round : rounds_) {
    const uint64_t next = left ^ (round.bits(right) & mask);
    left = right;
    right = next;
  }
  return (left << half_bits_) | right;
}

int64_t KeyedPermutation::operator()(int64_t position) const {
  DZ_CHECK(position >= 0 && position < size_, "position", position, "size", size_);
  // The network permutes a domain of at most four times the size; following it from inside until it is inside again is a permutation too.
  uint64_t value = static_cast<uint64_t>(position);
  do value = scramble(value);
  while (value >= static_cast<uint64_t>(size_));
  return static_cast<int64_t>(value);
}

}  // namespace dz::data
