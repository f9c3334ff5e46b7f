#include "data/numpy_random.h"

#include <array>

#include "base/check.h"

namespace dz::data {
namespace {

// SeedSequence's pool of four words: each word hashed in, each mixed with each, and what is left of the entropy mixed into all.
class Pool {
 public:
  explicit Pool(const std::vector<uint32_t>& entropy) {
    for (size_t i = 0; i < words.size(); ++i) words[i] = hash(i < entropy.size() ? entropy[i] : 0);
    for (size_t from = 0; from < words.size(); ++from) {
      for (size_t to = 0; to < words.size(); ++to) {
        if (from != to) words[to] = mix(words[to], hash(words[from]));
      }
    }
    for (size_t i = words.size(); i < entropy.size(); ++i) {
      for (uint32_t& word : words) word = mix(word, hash(entropy[i]));
    }
  }

  std::array<uint32_t, 4> words{};

 private:
  uint32_t hash(uint32_t value) {
    value ^= constant_;
    constant_ *= 0x931e8875u;
    value *= constant_;
    return value ^ (value >> 16);
  }
  static uint32_t mix(uint32_t x, uint32_t y) {
    const uint32_t result = 0xca01f9ddu * x - 0x4973f715u * y;
    return result ^ (result >> 16);
  }

  uint32_t constant_ = 0x43b0d7e5u;
};

}  // namespace

std::vector<uint32_t> seed_sequence(const BigSeed& seed, int64_t count) {
  const Pool pool(seed.words());
  std::vector<uint32_t> state;
  uint32_t constant = 0x8b51f9ddu;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t value = pool.words[static_cast<size_t>(i % 4)] ^ constant;
    constant *= 0x58f38dedu;
    value *= constant;
    state.push_back(value ^ (value >> 16));
  }
  return state;
}

NumpyGenerator::NumpyGenerator(const BigSeed& seed) {
  const std::vector<uint32_t> words = seed_sequence(seed, 8);
  const auto word64 = [&](size_t i) { return (uint64_t{words[2 * i + 1]} << 32) | words[2 * i]; };
  const Word128 start = (Word128{word64(0)} << 64) | word64(1), sequence = (Word128{word64(2)} << 64) | word64(3);
  increment_ = (sequence << 1) | 1;
  raw64();
  state_ += start;
  raw64();
}

uint64_t NumpyGenerator::raw64() {
  constexpr Word128 kMultiplier = (Word128{2549297995355413924u} << 64) | 4865540595714422341u;
  state_ = state_ * kMultiplier + increment_;
  const uint64_t value = static_cast<uint64_t>(state_ >> 64) ^ static_cast<uint64_t>(state_);
  const unsigned turn = static_cast<unsigned>(state_ >> 122);
  return (value >> turn) | (value << ((64 - turn) & 63));
}

uint32_t NumpyGenerator::next32() {
  if (has_half_) {
    has_half_ = false;
    return half_;
  }
  const uint64_t value = raw64();
  has_half_ = true;
  half_ = static_cast<uint32_t>(value >> 32);
  return static_cast<uint32_t>(value);
}

double NumpyGenerator::random() { return static_cast<double>(raw64() >> 11) * 0x1p-53; }

uint64_t NumpyGenerator::interval(uint64_t most) {
  if (most == 0) return 0;
  const uint64_t mask = ~uint64_t{0} >> __builtin_clzll(most);
  const bool narrow = most <= 0xffffffff;
  uint64_t value = 0;
  do value = (narrow ? next32() : raw64()) & mask;
  while (value > most);
  return value;
}

int64_t NumpyGenerator::integers(int64_t low, int64_t high) {
  DZ_CHECK(low < high, "low", low, "high", high);
  const uint64_t most = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) - 1, count = most + 1;
  uint64_t offset = 0;
  if (most == 0) {
    offset = 0;
  } else if (most == 0xffffffff) {
    offset = next32();
  } else if (most < 0xffffffff) {
    const uint32_t narrow = static_cast<uint32_t>(count), threshold = (0 - narrow) % narrow;
    uint64_t product = 0;
    do product = uint64_t{next32()} * narrow;
    while (static_cast<uint32_t>(product) < threshold);
    offset = product >> 32;
  } else {
    const uint64_t threshold = (0 - count) % count;
    Word128 product = 0;
    do product = Word128{raw64()} * count;
    while (static_cast<uint64_t>(product) < threshold);
    offset = static_cast<uint64_t>(product >> 64);
  }
  return static_cast<int64_t>(static_cast<uint64_t>(low) + offset);
}

std::vector<int64_t> NumpyGenerator::permutation(int64_t count) {
  DZ_CHECK(count >= 0, "count", count);
  std::vector<int64_t> items(static_cast<size_t>(count));
  std::iota(items.begin(), items.end(), 0);
  shuffle(std::span(items));
  return items;
}

}  // namespace dz::data
