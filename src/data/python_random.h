// Python's random.Random(seed) for integer seeds, bit for bit: MT19937 seeded by array, and the operations that OLMo-core uses to order
// files and documents (CPython 3.9 and later: Modules/_randommodule.c, Lib/random.py).
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "data/big_seed.h"
#include "numerics/mt19937.h"

namespace dz::data {

class PythonRandom {
 public:
  explicit PythonRandom(const BigSeed& seed);  // a negative seed -s gives what s gives

  uint32_t next32();                   // getrandbits(32)
  uint64_t getrandbits(int bits);      // 0 ... 64
  double random();                     // [0, 1), 53 bits
  uint64_t randbelow(uint64_t count);  // [0, count), count >= 1: randrange(count)

  template <class T>
  void shuffle(std::span<T> items) {
    for (size_t i = items.size(); i-- > 1;) std::swap(items[i], items[static_cast<size_t>(randbelow(i + 1))]);
  }

  // sample(range(count), picks), picks <= count.
  std::vector<int64_t> sample(int64_t count, int64_t picks);

 private:
  numerics::Mt19937 engine_;
};

}  // namespace dz::data
