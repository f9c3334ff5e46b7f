// The memory of a training run, tensor by tensor, before anything is allocated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "parallel/lanes.h"
#include "train/recipe.h"

namespace dz::train {

struct MemoryLine {
  std::string name;
  int64_t bytes = 0;
};

struct MemoryPlan {
  std::vector<MemoryLine> state;        // weights, moments, gradients, cast weights, lane buffers
  std::vector<MemoryLine> activations;  // by name, all layers together; some lie over others
  int64_t activation_bytes = 0;         // of the arena
  int64_t gradients = 0;                // copies of all gradients
  int64_t instances = 0;                // that the activations have room for
  int64_t step_instances = 0;           // of a step, of this rank
  int64_t micro_batches = 0;            // of a step
  int64_t bytes = 0;                    // of all tensors; kernels and libraries take some tens of MB more
};

// Of the busiest of `ranks` processes, each with a contiguous range of the lanes. Every rank holds the whole state, unless `sharded`: then master
// weights and moments are cut over the ranks. ConfigError when there are more ranks than lanes that hold an instance.
MemoryPlan plan_memory(const Recipe& recipe, const Topology& topology, int64_t ranks = 1, bool sharded = false);

}  // namespace dz::train
