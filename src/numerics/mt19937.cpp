#include "numerics/mt19937.h"

#include <algorithm>

#include "base/check.h"

namespace dz::numerics {

Mt19937::Mt19937(uint32_t seed) : next_(state_.size()) {
  state_[0] = seed;
  for (size_t i = 1; i < state_.size(); ++i) state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + static_cast<uint32_t>(i);
}

Mt19937::Mt19937(std::span<const uint32_t> key) : Mt19937(19650218u) {
  DZ_CHECK(!key.empty(), "words", key.size());
  const size_t size = state_.size();
  const auto folded = [&](size_t i) { return state_[i - 1] ^ (state_[i - 1] >> 30); };
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

void Mt19937::refill() {
  constexpr size_t kSize = 624, kAhead = 397;
  const auto twist = [&](size_t i, size_t after, size_t ahead) {
    const uint32_t pair = (state_[i] & 0x80000000u) | (state_[after] & 0x7fffffffu);
    state_[i] = state_[ahead] ^ (pair >> 1) ^ (0x9908b0dfu & (0u - (pair & 1)));
  };
  for (size_t i = 0; i < kSize - kAhead; ++i) twist(i, i + 1, i + kAhead);
  for (size_t i = kSize - kAhead; i < kSize - 1; ++i) twist(i, i + 1, i + kAhead - kSize);
  twist(kSize - 1, 0, kAhead - 1);
  next_ = 0;
}

void Mt19937::skip(int64_t count) {
  while (count > 0) {
    if (next_ == state_.size()) refill();
    const int64_t here = std::min(count, static_cast<int64_t>(state_.size() - next_));
    next_ += static_cast<size_t>(here);
    count -= here;
  }
}

}  // namespace dz::numerics
