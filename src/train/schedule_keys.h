// recipe.schedule as a file gives it, and the rate of a step that follows from it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "optim/schedules.h"
#include "train/fields.h"

namespace dz::train {

struct Recipe;

// Keys that optim::Schedule does not hold in this form.
struct ScheduleKeys {
  bool in_tokens = false;           // positions are tokens, the batch of the step counted, instead of steps
  int64_t t_max = 0;                // 0: recipe.steps
  std::vector<double> periods;      // of wsds
  std::vector<std::string> pieces;  // of sequential
  bool scaled_by_batch = false;     // the peak follows the root of the batch size: batch_scaling sqrt
};

void visit_schedule(FieldVisitor& visitor, optim::Schedule& schedule, ScheduleKeys& keys);

// A piece of a sequence: "cosine length=500 warmup=100 alpha_f=0.1", the name first, then keys of recipe.schedule in any order.
// ConfigError naming `where`: an unknown or repeated key, one that this schedule does not read, text that is no number.
optim::Schedule parse_piece(std::string_view text, const std::string& where);

// Puts the keys into `schedule`, whose t_max is then set, and checks the whole. ConfigError naming `where` and the key.
void complete_schedule(optim::Schedule& schedule, const ScheduleKeys& keys, int64_t steps, const std::string& where);

// The rate of the update that makes `step`; `tokens`: read up to then, the batch of this step counted.
double learning_rate(const Recipe& recipe, int64_t step, int64_t tokens);

// "cosine to step 40, warm-up 6, peak 0.003".
std::string describe_schedule(const Recipe& recipe);

}  // namespace dz::train
