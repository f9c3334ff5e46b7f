#include "data/epoch_permutations.h"

#include <fmt/format.h>

#include <exception>
#include <new>
#include <numeric>
#include <span>

#include "data/numpy_random.h"
#include "data/order_dialects.h"

namespace dz::data {

EpochPermutations::Permutation EpochPermutations::of(int64_t epoch) const {
  std::promise<Permutation> promise;
  std::shared_future<Permutation> found;
  bool mine = false;
  {
    const std::lock_guard lock(mutex_);
    Slot* slot = slots_[0].used <= slots_[1].used ? &slots_[0] : &slots_[1];
    for (Slot& other : slots_) {
      if (other.used > 0 && other.epoch == epoch) slot = &other;
    }
    if (slot->used == 0 || slot->epoch != epoch) {
      // The old permutation goes before the new one is made.
      *slot = {.epoch = epoch, .used = 0, .permutation = promise.get_future().share()};
      mine = true;
    }
    slot->used = ++uses_;
    found = slot->permutation;
  }
  if (mine) {
    try {
      promise.set_value(make(epoch));
    } catch (...) {
      promise.set_exception(std::current_exception());
      const std::lock_guard lock(mutex_);
      for (Slot& slot : slots_) {
        if (slot.epoch == epoch) slot = {};
      }
    }
  }
  return found.get();
}

EpochPermutations::Permutation EpochPermutations::make(int64_t epoch) const {
  try {
    auto items = std::make_shared<std::vector<uint32_t>>(static_cast<size_t>(size_));
    std::iota(items->begin(), items->end(), uint32_t{0});
    NumpyGenerator(seed_of_(epoch)).shuffle(std::span(*items));
    return items;
  } catch (const std::bad_alloc&) {
    refuse_order("order.dialect", fmt::format("no memory for a permutation of {} items", size_), fmt::format("{} bytes", 4 * size_),
                 "the keyed order needs none");
  }
}

}  // namespace dz::data
