// Learning rate as a pure function of the position: the step, or the tokens up to it. OLMo-core's convention: the first update uses
// lr(1) = peak / warmup, the update `warmup` the peak (olmo_core/optim/scheduler.py; every operation in double and in its order, so the
// values are its bits).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dz::optim {

enum class ScheduleKind : uint8_t { kConstant, kCosine, kLinear, kWsd, kHalfCosine, kInverseSqrt, kCosineLinear, kWsds, kSequential };
std::string_view name_of(
    ScheduleKind kind);  // "constant", "cosine", "linear", "wsd", "half_cosine", "inv_sqrt", "cosine_linear", "wsds", "sequential"
ScheduleKind parse_schedule_kind(std::string_view name, const std::string& where);  // ConfigError listing the names

// Positions and lengths are steps, or tokens, the current batch counted: whoever calls decides.
struct Schedule {
  ScheduleKind kind = ScheduleKind::kCosine;
  double lr = 3e-4;                                      // the peak
  int64_t warmup = 0;                                    // length
  std::optional<double> warmup_fraction = std::nullopt;  // of t_max (wsds: of the first period) instead, rounded half to even
  double warmup_min_lr = 0;                              // where the warm-up starts
  double alpha_f = 0.1;                                  // both cosines, linear, inv_sqrt, cosine_linear: falls towards alpha_f * lr
  std::optional<int64_t> decay = std::nullopt;           // wsd, cosine_linear, wsds: length of the end that falls linearly to decay_min_lr
  double decay_fraction = 0.1;                           // of t_max (wsds: of the period), when `decay` is not given
  double decay_min_lr = 0;
  int64_t t_max = 0;                  // length of the whole schedule
  std::vector<int64_t> periods = {};  // wsds: lengths; each ends with a fall, the next begins at the peak
  int64_t length = 0;                 // of a piece of a sequence; the last has none
  std::vector<Schedule> pieces = {};  // sequential: their lr is where the piece before has ended, their t_max `length` unless given
};

// ConfigError naming the key under `where` ("recipe.schedule"): warm-up or decay longer than the schedule, values out of range.
void check(const Schedule& schedule, const std::string& where);

// The rate of the update at `position` (first step: 1). After t_max it stays at its end, inv_sqrt excepted; there OLMo-core's wsd and
// cosine_linear go on falling, below zero, and its sequence raises.
double learning_rate(const Schedule& schedule, int64_t position);

// The peak for another batch size: lr * sqrt(to / from), as OLMo-core's BatchSizeSchedulerCallback changes it.
double scaled_peak(double lr, int64_t from_batch, int64_t to_batch);

}  // namespace dz::optim
