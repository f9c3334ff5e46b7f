// In which memory the lanes of a micro-batch are summed (docs/numerics.md, "Lanes"): which of them wait for their neighbours, and how much that
// takes.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "model/config.h"
#include "model/transformer.h"
#include "parallel/lanes.h"

namespace dz::model {

// Joins lanes of however many instances.
inline constexpr int64_t kAnyLane = std::numeric_limits<int64_t>::max();

// What happens to a lane: its sum is put into `slot`, or joins the first of `nodes`.
struct LaneStep {
  parallel::Span instances;  // of the micro-batch
  int slot = 0;
  bool joins = false;
  bool last = false;
  std::vector<int> nodes;  // slots that it completes, innermost first; after those of the last lane the nodes to the left of the micro-batch
};

// In ascending order. Slot 0 is the root. `has_own`: of GradientNodes. Lanes of more than `most_joined` instances do not join.
// DZ_CHECK: the micro-batch is part of one lane or an aligned group of whole lanes.
std::vector<LaneStep> lane_steps(const LaneGroup& group, bool has_own, int64_t most_joined);

// The buffer of a slot: with a gradient of its own the micro-batch's slot 0 is that, and needs none (-1).
inline int buffer_of(bool has_own, int slot) { return has_own ? slot - 1 : slot; }

// Lanes of this many instances join in the head's gradient: those whose logits are one chunk of `chunk_rows`.
inline int64_t most_joined_by_head(int64_t chunk_rows, int64_t seq) { return chunk_rows >= seq ? 1 : 0; }

// A micro-batch of a step and the copies of all gradients that it needs, by number (GradientNodes).
struct PlannedMicroBatch {
  parallel::MicroBatch micro;
  int slot = 0;           // its own, if it has one
  bool has_own = true;    // false: it is all of its lanes and completes a node
  std::vector<int> left;  // finished nodes that it completes, innermost first
  int root() const { return left.empty() ? slot : left.back(); }
};

// The lane tree over `range` (aligned, a power of two of lanes): after the last micro-batch its root is in that one's root().
std::vector<PlannedMicroBatch> plan_step(int64_t instances, int64_t lanes, parallel::Span range, const std::vector<parallel::MicroBatch>& pieces);

// Bytes of the buffers that LaneSums has after these micro-batches of `limits` of a step.
int64_t lane_buffer_bytes(const ModelConfig& config, const Limits& limits, int64_t instances, int64_t lanes,
                          const std::vector<PlannedMicroBatch>& plan);

}  // namespace dz::model
