// The permutations of epochs that orders of other projects need in memory: 4 bytes an item, made once a process. Internal to this room.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <vector>

#include "data/big_seed.h"

namespace dz::data {

class EpochPermutations {
 public:
  using Permutation = std::shared_ptr<const std::vector<uint32_t>>;

  // Items 0 ... size - 1, shuffled by NumPy's generator with the seed of the epoch.
  EpochPermutations(int64_t size, std::function<BigSeed(int64_t epoch)> seed_of) : size_(size), seed_of_(std::move(seed_of)) {}

  // Threads that ask for the same epoch share one permutation. The last two asked for are kept: a batch may run over the end of an epoch, and
  // threads that read ahead are in the next epoch while others are still in this one.
  Permutation of(int64_t epoch) const;

 private:
  struct Slot {
    int64_t epoch = -1;
    int64_t used = 0;
    std::shared_future<Permutation> permutation;
  };

  Permutation make(int64_t epoch) const;

  int64_t size_;
  std::function<BigSeed(int64_t)> seed_of_;
  mutable std::mutex mutex_;
  mutable Slot slots_[2];
  mutable int64_t uses_ = 0;
};

}  // namespace dz::data
