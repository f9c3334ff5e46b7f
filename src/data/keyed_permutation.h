// A keyed permutation that can be asked at any position without a table (docs/data.md, "Order"). Internal to this room.
#pragma once

#include <cstdint>
#include <vector>

#include "numerics/philox.h"

namespace dz::data {

// A permutation of [0, size): a Feistel network of ten rounds over the least domain of 2, 4, 6 ... bits that holds `size`, walked until it
// lands inside (four steps a position at most on average). The round function is Philox, keyed by (seed, "data order", epoch, round).
class KeyedPermutation {
 public:
  KeyedPermutation(int64_t size, uint64_t seed, int64_t epoch);  // size >= 1
  int64_t operator()(int64_t position) const;                    // position in [0, size)

 private:
  uint64_t scramble(uint64_t value) const;

  int64_t size_;
  int half_bits_ = 1;
  std::vector<numerics::RandomStream> rounds_;
};

}  // namespace dz::data
