#include "data/order.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/error.h"

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

Order::Order(int64_t instances, int64_t batch, uint64_t seed) : instances_(instances), batch_(batch), seed_(seed) {
  if (batch < 1) throw ConfigError(Complaint{.where = "recipe.batch", .found = std::to_string(batch), .expected = "at least 1 instance", .hint = ""});
  if (batch > instances) {
    throw ConfigError(Complaint{.where = "recipe.batch",
                                .found = fmt::format("{} instances a step", batch),
                                .expected = fmt::format("at most the {} instances of the data", instances),
                                .hint = "use more data, a smaller batch or a shorter sequence_length"});
  }
}

std::vector<int64_t> Order::batch(int64_t step) const {
  int64_t first = 0, end = 0;
  const bool overflow = step < 1 || __builtin_mul_overflow(step - 1, batch_, &first) || __builtin_add_overflow(first, batch_, &end);
  DZ_CHECK(!overflow, "step", step, "batch", batch_);
  std::vector<int64_t> ids;
  for (int64_t position = first; position < end;) {
    const int64_t epoch = position / instances_;
    const KeyedPermutation permutation(instances_, seed_, epoch);
    for (; position < end && position / instances_ == epoch; ++position) ids.push_back(permutation(position % instances_));
  }
  return ids;
}

int64_t Order::epoch(int64_t step) const {
  DZ_CHECK(step >= 1, "step", step);
  return (step - 1) * batch_ / instances_;
}

}  // namespace dz::data
