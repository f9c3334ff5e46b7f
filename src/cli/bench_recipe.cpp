#include "cli/bench_recipe.h"

namespace dz::cli {

train::Recipe bench_recipe(const model::BenchSize& size, const std::string& dtype) {
  train::Recipe recipe;
  recipe.dtype = dtype;
  recipe.model = size.config;
  recipe.data.sequence_length = size.seq_len;
  recipe.batch = size.instances();
  recipe.schedule = {.kind = optim::ScheduleKind::kConstant, .lr = 1e-3, .t_max = 1};
  return recipe;
}

}  // namespace dz::cli
