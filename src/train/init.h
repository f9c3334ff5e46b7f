// The weights that a fresh run begins with: made by a method, or read from another model.
#pragma once

#include <string>
#include <string_view>

#include "model/init.h"
#include "train/progress.h"
#include "train/recipe.h"
#include "train/step.h"

namespace dz::train {

// `recipe.init` is the name of a method (random, torch, or one of OLMo-core's), not a path.
bool is_init_method(std::string_view init);

// What recipe.init, init_stream and init_seed mean together; recipe.init is a method.
model::InitSettings init_settings(const Recipe& recipe);
// ConfigError naming a key under `where` ("recipe"): a stream or seed with a path, or with `random` another stream than its own.
void check_init(const Recipe& recipe, const std::string& where);

// Fills the weights of `state`. Returns their digest when they were read from a file, so that it can be part of the run's identity; empty for
// a method, which the recipe describes whole.
std::string init_weights(const Recipe& recipe, TrainState& state, ThreadPool& pool, Progress& progress);

}  // namespace dz::train
