// In which order a run sees its instances: a keyed permutation of each epoch that can be asked at any position without a table
// (docs/data.md, "Order"). The batch of a step is a pure function of (instances, batch, seed, step): a resume needs no other state.
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

class Order {
 public:
  // ConfigError when a batch is larger than the data (instances 0 included); both numbers are in the message.
  Order(int64_t instances, int64_t batch, uint64_t seed);

  // The instances of `step` (from 1 on). Position p = (step - 1) * batch + j has epoch p / instances; an epoch is one full permutation, so
  // every instance comes once before any comes again; a batch may run over the end of an epoch.
  std::vector<int64_t> batch(int64_t step) const;
  int64_t epoch(int64_t step) const;  // of the first instance of the step, from 0 on

  int64_t instances() const { return instances_; }
  int64_t batch_size() const { return batch_; }

 private:
  int64_t instances_, batch_;
  uint64_t seed_;
};

}  // namespace dz::data
