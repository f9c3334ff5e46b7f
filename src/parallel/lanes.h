// Lanes: how the gradient of a batch is cut into chains of additions and joined again, whatever the micro-batch or the rank count.
//
// Of n instances lane l of V holds [floor(l n / V), floor((l + 1) n / V)); an empty lane is absent. Inside a lane one chain in token order;
// across lanes one binary tree over the lane number, in which a node with one child is that child (docs/numerics.md, "Lanes").
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace dz::parallel {

struct Span {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  friend bool operator==(const Span&, const Span&) = default;
};

// The instances of one lane, as indices into the batch.
Span lane_instances(int64_t instances, int64_t lanes, int64_t lane);

// One pass of forward and backward: part of one lane, or all of an aligned group of lanes (a power of two of them, some perhaps empty).
struct MicroBatch {
  Span instances;
  Span lanes;
  bool first_part = true;  // false: continues the chain of the lane that the micro-batch before left unfinished
  bool last_part = true;   // false: the lane goes on in the next micro-batch
};

// The largest legal pieces of at most `max_instances` (>= 1) that cover the lanes in `range` (all of them: {0, lanes}), in order.
std::vector<MicroBatch> plan_micro_batches(int64_t instances, int64_t lanes, int64_t max_instances, Span range);

// Numbers of buffers, the lowest free one first.
class Slots {
 public:
  int take();
  void give_back(int slot) { taken_[static_cast<size_t>(slot)] = false; }
  int64_t most() const { return static_cast<int64_t>(taken_.size()); }  // that were ever taken at once

 private:
  std::vector<bool> taken_;
};

// Joins finished nodes, given in ascending lane order, into one. Slots name buffers of the caller.
class LaneTree {
 public:
  // merge(a, b): buffer a = a + b; buffer b is free afterwards. The root is the node over `top` (aligned, a power of two of lanes).
  LaneTree(int64_t instances, int64_t lanes, Span top, std::function<void(int a, int b)> merge);
  LaneTree(int64_t instances, int64_t lanes, std::function<void(int a, int b)> merge) : LaneTree(instances, lanes, {0, lanes}, std::move(merge)) {}
  // The node over `lanes` (aligned, a power of two of them) is complete and lies in `slot`. Merges what can be merged.
  void add(Span lanes, int slot);
  // After the last node: the slot of the root.
  int root() const;

 private:
  struct Node {
    Span lanes;
    int slot;
  };
  bool is_empty(Span lanes) const;

  int64_t instances_, lanes_;
  Span top_;
  std::function<void(int, int)> merge_;
  std::vector<Node> stack_;
};

}  // namespace dz::parallel
