// One update of weights and moments under a recipe: Muon for the matrices of the layers if the recipe says so, AdamW for the rest.
#pragma once

#include <string>
#include <vector>

#include "model/parameters.h"
#include "optim/muon.h"
#include "train/recipe.h"

namespace dz::train {

struct TrainState;

class Updater {
 public:
  explicit Updater(const Recipe& recipe);

  // `clip` multiplies the gradient, `lr` is the schedule's rate. Not to be called for a skipped step. state.adam_step is the caller's to count.
  void update(TrainState& state, const model::Parameters& gradient, float clip, double lr, ThreadPool& pool);

 private:
  const Recipe& recipe_;
  std::vector<bool> by_muon_;   // by tensor, in the order of the parameters
  std::vector<double> decays_;  // the same
  optim::Muon muon_;
};

// For people: which tensors do not decay, which are Muon's. Each line goes after "recipe  "; `schedule` opens the first.
std::vector<std::string> describe_update(const Recipe& recipe, const std::string& schedule);

}  // namespace dz::train
