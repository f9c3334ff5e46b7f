// How long a step will take: layers, head and optimizer are run for a moment at the shapes of the recipe, and what they took is added up.
#pragma once

#include "model/remat.h"
#include "train/memory_plan.h"

namespace dz {
class ThreadPool;
}

namespace dz::train {

struct StepEstimate {
  double forward = 0, head = 0, backward = 0, optimizer = 0;  // seconds of a step, nothing computed again
  std::vector<double> stages;                                 // of model::kStages: what computing each again in every layer but the last adds
  double merge = 0;                                           // joining the gradients of micro-batches

  double seconds(model::Remat remat) const;
};

// Measures for a few seconds on this machine with the threads of `pool`; memory for one layer, a part of the vocabulary and a part of the
// optimizer's state is needed. `plan` says how the step is cut.
StepEstimate estimate_step(const Recipe& recipe, const MemoryPlan& plan, ThreadPool& pool);

}  // namespace dz::train
