// The moments that a fresh run begins with when it goes on from another: recipe.init_moments.
#pragma once

#include <string>

#include "train/progress.h"
#include "train/recipe.h"
#include "train/step.h"

namespace dz::train {

// Fills the moments of `state` and says so on `progress`. Returns their digest, which takes part in the identity of the run; without files it
// does nothing and returns "". Tensors are f32 or bf16 under the Hugging Face names of the weights, or exp_avg.NAME and exp_avg_sq.NAME as in
// the moments of a checkpoint: that file then stands for both keys.
//   InputError       no such file
//   CheckpointError  not a safetensors file
//   DataError        a tensor is missing, left over, of another shape or type; a moment is not finite, a second moment below zero
std::string load_init_moments(const Recipe& recipe, TrainState& state, ThreadPool& pool, Progress& progress);

}  // namespace dz::train
