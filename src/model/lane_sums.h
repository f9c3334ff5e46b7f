// Sums the gradient of one tensor over the lanes of a micro-batch: one chain a lane, then the lane tree (docs/numerics.md, "Lanes").
// The buffers for the lanes that are not joined yet are as large as one tensor, never a copy of all gradients.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/large_memory.h"
#include "model/transformer.h"
#include "parallel/lanes.h"

namespace dz::model {

class LaneSums {
 public:
  explicit LaneSums(ThreadPool& pool) : pool_(pool) {}

  // The micro-batch of the sums that follow. DZ_CHECK: it is part of one lane or an aligned group of whole lanes, of `instances` in all.
  void begin(const LaneGroup& group, int64_t instances);

  // part(instances, sum, fresh): adds the gradient of these instances of the micro-batch, in order, to `sum`, which starts at +0 when `fresh`
  // (its contents are then not valid). Called for each lane ascending; the root of the tree ends in `gradient`.
  using Part = std::function<void(parallel::Span instances, float* sum, bool fresh)>;
  void sum(std::span<float> gradient, const Part& part);

  // The same for ops that can only add: a fresh sum is cleared before.
  using Adding = std::function<void(parallel::Span instances, float* sum)>;
  void sum_adding(std::span<float> gradient, const Adding& part);

 private:
  struct Lane {
    parallel::Span lanes, instances;
  };

  float* buffer(int slot, std::span<float> gradient);

  ThreadPool& pool_;
  LaneGroup group_;
  std::vector<Lane> lanes_;                // the non-empty ones of the micro-batch
  std::vector<LargeVector<float>> slots_;  // slot 0 is the gradient itself and has no buffer
};

}  // namespace dz::model
