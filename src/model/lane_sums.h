// Sums the gradient of one tensor over the lanes of a micro-batch: one chain a lane, then the lane tree (docs/numerics.md, "Lanes"), up through the
// nodes that the micro-batch completes. A lane that is the right side of its node is added to the left side as it is finished, without memory of its
// own; the buffers for lanes that wait are as large as one tensor, never a copy of all gradients.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/large_memory.h"
#include "model/lane_plan.h"
#include "model/transformer.h"

namespace dz::model {

// What a part of a sum does with its target.
enum class Into : uint8_t {
  kFresh,     // target = the gradient; what was there is not read
  kContinue,  // the chain in target goes on
  kJoin,      // target = target + the gradient, whose chain starts at +0
};

class LaneSums {
 public:
  explicit LaneSums(ThreadPool& pool) : pool_(pool) {}

  // The micro-batch of the sums that follow. DZ_CHECK: it is part of one lane or an aligned group of whole lanes, of `instances` in all.
  void begin(const LaneGroup& group, int64_t instances, const GradientNodes& nodes);

  // Of the micro-batch: which tensors there are and how large they are, whatever they hold.
  const Parameters& shape() const { return nodes_.own != nullptr ? *nodes_.own : *nodes_.left.at(0); }
  int64_t size_of(size_t tensor) const { return static_cast<int64_t>(shape().tensor(tensor).size()); }

  // part(instances, target, into): puts the gradient of these instances of the micro-batch, in order, into `target`. Called for each lane ascending.
  // A lane of more instances than `most_joined` is never asked to join: its part can only be fresh or go on, and a buffer takes it.
  using Part = std::function<void(parallel::Span instances, float* target, Into into)>;
  void sum(size_t tensor, const Part& part, int64_t most_joined = kAnyLane);

  // The same for ops that can only add: a fresh target is cleared before.
  using Adding = std::function<void(parallel::Span instances, float* target)>;
  void sum_adding(size_t tensor, const Adding& part);

  // The same for the rows of an embedding of `width` columns, of which only those of `tokens` [instances of the micro-batch, seq] get a gradient:
  // add(instances, rows, target) adds that of each token to row rows[token of the micro-batch] of `target`. Lanes are joined for those rows alone.
  using AddingRows = std::function<void(parallel::Span instances, const int32_t* rows, float* target)>;
  void sum_rows(size_t tensor, std::span<const int32_t> tokens, int64_t width, const AddingRows& add);

  int64_t bytes() const;  // of the buffers so far

 private:
  // Where a sum goes: its own memory, or none when it is added to the first of `left`; then the nodes that it completes, innermost first.
  struct Target {
    float* own = nullptr;
    std::vector<float*> left;
    size_t count = 0;  // floats of the sum
    size_t room = 0;   // of a buffer for it
  };

  Target target_of(size_t tensor);
  void sum(const Target& target, const Part& part, int64_t most_joined);
  float* memory_of(const Target& target, int slot);
  // Adds `value` to the innermost of `nodes`, that to the next, up to the last, which is the only one that is written.
  void join(std::span<float* const> nodes, const float* value, size_t count);
  void clear(std::span<float> values);

  ThreadPool& pool_;
  LaneGroup group_;
  GradientNodes nodes_;
  std::vector<LargeVector<float>> buffers_;
  LargeVector<float> rows_;  // the gradient of the rows of an embedding that the micro-batch touches
};

}  // namespace dz::model
