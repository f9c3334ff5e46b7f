#include "optim/schedules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "base/error.h"
#include "numerics/functions64.h"

namespace dz::optim {
namespace {

constexpr double kPi = 0x1.921fb54442d18p+1;
constexpr std::array kKinds = {ScheduleKind::kConstant, ScheduleKind::kCosine, ScheduleKind::kLinear, ScheduleKind::kWsd};

// Python's round(): half to even, which is IEEE's default rounding.
int64_t round_fraction(double fraction, int64_t steps) { return static_cast<int64_t>(std::nearbyint(static_cast<double>(steps) * fraction)); }

int64_t warmup_steps(const Schedule& schedule) {
  return schedule.warmup_fraction ? round_fraction(*schedule.warmup_fraction, schedule.t_max) : schedule.warmup;
}
int64_t decay_steps(const Schedule& schedule) { return schedule.decay ? *schedule.decay : round_fraction(schedule.decay_fraction, schedule.t_max); }

// From `low` at 0 to `high` at `steps`.
double ramp(double low, double high, int64_t current, int64_t steps) {
  return low + (high - low) * static_cast<double>(std::min(current, steps)) / static_cast<double>(steps);
}

[[noreturn]] void refuse(const std::string& where, const char* key, const std::string& found, const std::string& expected) {
  throw ConfigError(Complaint{.where = where + "." + key, .found = found, .expected = expected, .hint = ""});
}

}  // namespace

std::string_view name_of(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::kConstant:
      return "constant";
    case ScheduleKind::kCosine:
      return "cosine";
    case ScheduleKind::kLinear:
      return "linear";
    case ScheduleKind::kWsd:
      return "wsd";
  }
  return "";
}

ScheduleKind parse_schedule_kind(std::string_view name, const std::string& where) {
  for (const ScheduleKind kind : kKinds) {
    if (name == name_of(kind)) return kind;
  }
  throw ConfigError(Complaint{.where = where, .found = fmt::format("\"{}\"", name), .expected = "constant, cosine, linear or wsd", .hint = ""});
}

void check(const Schedule& schedule, const std::string& where) {
  const auto is_fraction = [](double x) { return x >= 0 && x <= 1; };
  if (!(schedule.lr > 0) || !std::isfinite(schedule.lr))
    refuse(where, "lr", fmt::format("{}", schedule.lr), "a positive number (the peak: recipe.optimizer.lr)");
  if (schedule.t_max < 1) refuse(where, "t_max", fmt::format("{}", schedule.t_max), "at least 1 step");
  if (schedule.warmup_fraction && !is_fraction(*schedule.warmup_fraction))
    refuse(where, "warmup_fraction", fmt::format("{}", *schedule.warmup_fraction), "0 to 1");
  if (schedule.warmup < 0) refuse(where, "warmup", fmt::format("{}", schedule.warmup), "0 or more steps");
  if (!is_fraction(schedule.alpha_f)) refuse(where, "alpha_f", fmt::format("{}", schedule.alpha_f), "0 to 1");
  if (!(schedule.warmup_min_lr >= 0 && schedule.warmup_min_lr < schedule.lr)) {
    refuse(where, "warmup_min_lr", fmt::format("{}", schedule.warmup_min_lr), fmt::format("0 or more and below the peak {}", schedule.lr));
  }
  const int64_t warmup = warmup_steps(schedule);
  if (warmup > schedule.t_max)
    refuse(where, "warmup", fmt::format("{} steps", warmup), fmt::format("at most the {} steps of the schedule", schedule.t_max));
  if (schedule.kind != ScheduleKind::kWsd) return;
  if (schedule.decay && *schedule.decay < 0) refuse(where, "decay", fmt::format("{}", *schedule.decay), "0 or more steps");
  if (!is_fraction(schedule.decay_fraction)) refuse(where, "decay_fraction", fmt::format("{}", schedule.decay_fraction), "0 to 1");
  if (!(schedule.decay_min_lr >= 0 && schedule.decay_min_lr < schedule.lr)) {
    refuse(where, "decay_min_lr", fmt::format("{}", schedule.decay_min_lr), fmt::format("0 or more and below the peak {}", schedule.lr));
  }
  const int64_t decay = decay_steps(schedule);
  if (decay > schedule.t_max - warmup) {
    refuse(where, "decay", fmt::format("{} steps", decay),
           fmt::format("at most {}: {} steps less the warm-up of {}", schedule.t_max - warmup, schedule.t_max, warmup));
  }
}

double learning_rate(const Schedule& schedule, int64_t step) {
  DZ_CHECK(step >= 0, "step", step);
  const int64_t warmup = warmup_steps(schedule), t_max = schedule.t_max;
  const double lr = schedule.lr;
  // Constant and WSD count the step `warmup` into the warm-up, the others do not: the same value by two formulas, whose bits may differ.
  const bool inclusive = schedule.kind == ScheduleKind::kConstant || schedule.kind == ScheduleKind::kWsd;
  if (warmup > 0 && (step < warmup || (inclusive && step == warmup))) return ramp(schedule.warmup_min_lr, lr, step, warmup);
  switch (schedule.kind) {
    case ScheduleKind::kConstant:
      return lr;
    case ScheduleKind::kWsd: {
      const int64_t decay = decay_steps(schedule);
      if (decay == 0 || step < t_max - decay) return lr;
      return ramp(schedule.decay_min_lr, lr, std::max(t_max - step, int64_t{0}), decay);
    }
    case ScheduleKind::kCosine:
    case ScheduleKind::kLinear:
      break;
  }
  const double end = schedule.alpha_f * lr;
  if (step >= t_max) return end;
  const auto current = static_cast<double>(step - warmup), length = static_cast<double>(t_max - warmup);
  if (schedule.kind == ScheduleKind::kLinear) return lr - (lr - end) * (current / length);
  return end + (lr - end) * (1 + numerics::cos(kPi * current / length)) / 2;
}

}  // namespace dz::optim
