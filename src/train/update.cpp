#include "train/update.h"

#include <fmt/format.h>

#include <algorithm>

#include "train/step.h"

namespace dz::train {
namespace {

std::vector<bool> muon_tensors(const Recipe& recipe) {
  std::vector<bool> by_muon;
  for (const model::ParameterSpec& spec : model::parameter_specs(recipe.model))
    by_muon.push_back(recipe.optimizer == OptimizerName::kMuon && optim::is_muon_matrix(spec.name, spec.shape));
  return by_muon;
}

// no_decay holds for either optimizer; the decay itself is its own.
std::vector<double> weight_decays(const Recipe& recipe, const std::vector<bool>& by_muon) {
  const std::vector<std::string> names = model::parameter_names(recipe.model);
  optim::AdamWSettings of_matrices = recipe.adamw;
  of_matrices.weight_decay = recipe.muon.weight_decay;
  std::vector<double> decays = optim::decay_table(recipe.adamw, names, "recipe.optimizer");
  const std::vector<double> matrix_decays = optim::decay_table(of_matrices, names, "recipe.optimizer");
  for (size_t i = 0; i < decays.size(); ++i) {
    if (by_muon[i]) decays[i] = matrix_decays[i];
  }
  return decays;
}

// Muon's rate has the shape of the schedule and its own peak.
double muon_lr(const Recipe& recipe, double lr) {
  return recipe.muon.lr == 0 || recipe.schedule.lr == 0 ? lr : lr / recipe.schedule.lr * recipe.muon.lr;
}

}  // namespace

Updater::Updater(const Recipe& recipe)
    : recipe_(recipe), by_muon_(muon_tensors(recipe)), decays_(weight_decays(recipe, by_muon_)), muon_(recipe.muon) {}

void Updater::update(TrainState& state, const model::Parameters& gradient, float clip, double lr, ThreadPool& pool) {
  std::vector<optim::OptimizedTensor> tensors;
  std::vector<double> decays;
  for (size_t i = 0; i < gradient.size(); ++i) {
    const model::ParameterSpec& spec = gradient.specs()[i];
    if (by_muon_[i]) {
      muon_.update({.rows = spec.shape[0],
                    .cols = spec.shape[1],
                    .gradient = gradient.tensor(i).data(),
                    .value = state.parameters.tensor(i).data(),
                    .momentum = state.exp_avg.tensor(i).data()},
                   muon_lr(recipe_, lr), decays_[i], clip, pool);
      continue;
    }
    decays.push_back(decays_[i]);
    tensors.push_back({.name = spec.name,
                       .count = static_cast<int64_t>(gradient.tensor(i).size()),
                       .gradient = gradient.tensor(i).data(),
                       .value = state.parameters.tensor(i).data(),
                       .exp_avg = state.exp_avg.tensor(i).data(),
                       .exp_avg_sq = state.exp_avg_sq.tensor(i).data()});
  }
  optim::adamw_update(recipe_.adamw, tensors, decays, lr, clip, state.adam_step, pool);
}

std::vector<std::string> describe_update(const Recipe& recipe, const std::string& schedule) {
  const std::vector<std::string> names = model::parameter_names(recipe.model);
  const std::vector<bool> by_muon = muon_tensors(recipe);
  const std::vector<double> decays = weight_decays(recipe, by_muon);
  std::vector<std::string> exempt;
  for (size_t i = 0; i < names.size(); ++i) {
    if (decays[i] == 0) exempt.push_back(names[i]);
  }
  const size_t shown = std::min<size_t>(exempt.size(), 3);
  std::vector<std::string> lines = {fmt::format("{}   weight decay {:g} on {} of {} tensors, not on {}{}", schedule, recipe.adamw.weight_decay,
                                                names.size() - exempt.size(), names.size(),
                                                fmt::join(exempt.begin(), exempt.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                                                exempt.size() > shown ? ", ..."
                                                : exempt.empty()      ? "none"
                                                                      : "")};
  if (recipe.optimizer == OptimizerName::kMuon)
    lines.push_back(fmt::format("Muon on {} matrices of the layers: peak {:g}, weight decay {:g}; AdamW on the rest",
                                std::count(by_muon.begin(), by_muon.end(), true), muon_lr(recipe, recipe.schedule.lr), recipe.muon.weight_decay));
  return lines;
}

}  // namespace dz::train
