#include "train/init.h"

#include <algorithm>

#include "checkpoint/digest.h"
#include "model/load.h"
#include "model/parameters.h"

namespace dz::train {

bool is_init_method(std::string_view init) { return init == "random"; }

std::string init_weights(const Recipe& recipe, TrainState& state, ThreadPool& pool, Progress& progress) {
  if (is_init_method(recipe.init)) {
    model::init_parameters(recipe.seed, state.parameters, pool);
    return "";
  }
  std::error_code ignored;
  const fs::path directory = fs::is_regular_file(recipe.init, ignored) ? fs::path(recipe.init) : model::model_directory(recipe.init);
  const model::Parameters loaded = model::load_parameters(directory, recipe.model);
  std::copy(loaded.arena().begin(), loaded.arena().end(), state.parameters.arena().begin());
  progress.note("init    weights of " + directory.string() + (recipe.init_moments.exp_avg.empty() ? "; moments 0, step 0" : "; step 0"));
  return checkpoint::digest_tensors(state.parameters.views(), pool).total.hex();
}

}  // namespace dz::train
