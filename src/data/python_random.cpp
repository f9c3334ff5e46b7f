#include "data/python_random.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <unordered_set>

#include "base/check.h"

namespace dz::data {

PythonRandom::PythonRandom(const BigSeed& seed) : next_(state_.size()) {
  const std::vector<uint32_t>& key = seed.words();
  const size_t size = state_.size();
  state_[0] = 19650218u;
  const auto folded = [&](size_t i) { return state_[i - 1] ^ (state_[i - 1] >> 30); };
  for (size_t i = 1; i < size; ++i) state_[i] = 1812433253u * folded(i) + static_cast<uint32_t>(i);
  size_t i = 1;
  const auto advance = [&] {
    if (++i < size) return;
    state_[0] = state_[size - 1];
    i = 1;
  };
  for (size_t round = 0, j = 0; round < std::max(size, key.size()); ++round, j = (j + 1) % key.size()) {
    state_[i] = (state_[i] ^ (folded(i) * 1664525u)) + key[j] + static_cast<uint32_t>(j);
    advance();
  }
  for (size_t round = 1; round < size; ++round) {
    state_[i] = (state_[i] ^ (folded(i) * 1566083941u)) - static_cast<uint32_t>(i);
    advance();
  }
  state_[0] = 0x80000000u;
}

void PythonRandom::refill() {
  const size_t size = state_.size();
  for (size_t i = 0; i < size; ++i) {
    const uint32_t pair = (state_[i] & 0x80000000u) | (state_[(i + 1) % size] & 0x7fffffffu);
    state_[i] = state_[(i + 397) % size] ^ (pair >> 1) ^ (pair & 1 ? 0x9908b0dfu : 0u);
  }
  next_ = 0;
}

uint32_t PythonRandom::next32() {
  if (next_ == state_.size()) refill();
  uint32_t value = state_[next_++];
  value ^= value >> 11;
  value ^= (value << 7) & 0x9d2c5680u;
  value ^= (value << 15) & 0xefc60000u;
  return value ^ (value >> 18);
}

uint64_t PythonRandom::getrandbits(int bits) {
  DZ_CHECK(bits >= 0 && bits <= 64, "bits", bits);
  if (bits == 0) return 0;
  if (bits <= 32) return next32() >> (32 - bits);
  const uint64_t low = next32();
  return low | (uint64_t{next32() >> (64 - bits)} << 32);
}

double PythonRandom::random() {
  const uint32_t high = next32() >> 5, low = next32() >> 6;
  return (high * 67108864.0 + low) * 0x1p-53;
}

uint64_t PythonRandom::randbelow(uint64_t count) {
  DZ_CHECK(count >= 1, "count", count);
  const int bits = static_cast<int>(std::bit_width(count));
  uint64_t value = 0;
  do value = getrandbits(bits);
  while (value >= count);
  return value;
}

std::vector<int64_t> PythonRandom::sample(int64_t count, int64_t picks) {
  DZ_CHECK(picks >= 0 && picks <= count, "picks", picks, "count", count);
  // Python takes a list of all items when that is no larger than its estimate of a set of the picks: 21 + 4^ceil(log4(3 picks)).
  int64_t set_size = 21, power = 1;
  while (power / 3 < picks && picks > 5) power *= 4;
  if (picks > 5) set_size += power;
  std::vector<int64_t> result;
  if (count <= set_size) {
    std::vector<int64_t> pool(static_cast<size_t>(count));
    std::iota(pool.begin(), pool.end(), 0);
    for (int64_t left = count; left > count - picks; --left) {
      const auto at = static_cast<size_t>(randbelow(static_cast<uint64_t>(left)));
      result.push_back(pool[at]);
      pool[at] = pool[static_cast<size_t>(left - 1)];
    }
    return result;
  }
  std::unordered_set<int64_t> taken;
  while (static_cast<int64_t>(result.size()) < picks) {
    const auto item = static_cast<int64_t>(randbelow(static_cast<uint64_t>(count)));
    if (taken.insert(item).second) result.push_back(item);
  }
  return result;
}

}  // namespace dz::data
