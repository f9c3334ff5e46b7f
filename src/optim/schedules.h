// Learning rate as a pure function of the step, in OLMo-core's convention: the first update uses lr(1) = peak / warmup, the update `warmup`
// uses the peak (olmo_core/optim/scheduler.py; every operation in double and in its order, so the values are its bits).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dz::optim {

enum class ScheduleKind : uint8_t { kConstant, kCosine, kLinear, kWsd };
std::string_view name_of(ScheduleKind kind);                                        // "constant", "cosine", "linear", "wsd"
ScheduleKind parse_schedule_kind(std::string_view name, const std::string& where);  // ConfigError listing the names

struct Schedule {
  ScheduleKind kind = ScheduleKind::kCosine;
  double lr = 3e-4;                                      // the peak
  int64_t warmup = 0;                                    // steps
  std::optional<double> warmup_fraction = std::nullopt;  // of t_max instead, rounded half to even
  double warmup_min_lr = 0;                              // where the warm-up starts
  double alpha_f = 0.1;                                  // cosine, linear: the end is alpha_f * lr
  std::optional<int64_t> decay = std::nullopt;           // wsd: last steps, falling linearly to decay_min_lr
  double decay_fraction = 0.1;                           // wsd, when `decay` is not given
  double decay_min_lr = 0;
  int64_t t_max = 0;  // steps of the whole schedule: recipe.steps unless the recipe says otherwise
};

// ConfigError naming the key under `where` ("recipe.schedule"): warm-up or decay longer than the schedule, values out of range.
void check(const Schedule& schedule, const std::string& where);

// The rate of the update that makes step `step` (first: 1). After t_max it stays at its end; there OLMo-core's WSD goes on falling, below
// zero, which nobody can want.
double learning_rate(const Schedule& schedule, int64_t step);

}  // namespace dz::optim
