#include "train/deviations.h"

#include <fmt/format.h>

namespace dz::train {

std::vector<std::string> describe_deviations(const Recipe& recipe) {
  std::vector<std::string> lines;
  const auto add = [&](bool deviates, const std::string& key, const std::string& does, const char* ours) {
    if (deviates) lines.push_back(fmt::format("{}: {}, as OLMo-core; ours would be {}", key, does, ours));
  };
  const bool ranks = recipe.loss_divisor == Divisor::kOlmoCore;
  add(recipe.data.order.dialect == "olmo-core", "data.order olmo-core", "PCG64 shuffles each epoch from seed + epoch",
      "keyed: the batch of a step from its number alone");
  add(ranks, fmt::format("loss.divisor olmo-core, {} rank{}", recipe.divisor_ranks, recipe.divisor_ranks == 1 ? "" : "s"),
      "each rank divides by its own targets, then the ranks are averaged", "global: all targets of the batch alike");
  add(ranks && recipe.data.filter.count > 0, "data.filter with that divisor", "filtered instances count their length as targets of no loss",
      "that they count 0");
  add(recipe.initial_step == 1 && recipe.init_moments.exp_avg.empty(), "optimizer.initial_step 1",
      "Adam's step begins at 1, what saving step 0 leaves", "0");
  add(recipe.data.packing.dialect == "olmo-core" && recipe.data.kind == DataKind::kPacked, "data.packing olmo-core",
      "documents of equal length in the order of an unstable sort", "stable");
  return lines;
}

}  // namespace dz::train
