#include "data/python_random.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <unordered_set>

#include "base/check.h"

namespace dz::data {

PythonRandom::PythonRandom(const BigSeed& seed) : engine_(seed.words()) {}

uint32_t PythonRandom::next32() { return engine_.next(); }

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
