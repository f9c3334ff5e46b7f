// The weights that a fresh run begins with: made by a method, or read from another model.
#pragma once

#include <string>
#include <string_view>

#include "train/progress.h"
#include "train/recipe.h"
#include "train/step.h"

namespace dz::train {

// `recipe.init` is the name of a method, not a path.
bool is_init_method(std::string_view init);

// Fills the weights of `state`. Returns their digest when they were read from a file, so that it can be part of the run's identity; empty for
// a method, which the recipe describes whole.
std::string init_weights(const Recipe& recipe, TrainState& state, ThreadPool& pool, Progress& progress);

}  // namespace dz::train
