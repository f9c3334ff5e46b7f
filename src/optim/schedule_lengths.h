// The lengths that a schedule gives as fractions.
#pragma once

#include <cmath>
#include <cstdint>

#include "optim/schedules.h"

namespace dz::optim {

// Python's round(): half to even, which is IEEE's default rounding.
inline int64_t round_fraction(double fraction, int64_t length) {
  return static_cast<int64_t>(std::nearbyint(static_cast<double>(length) * fraction));
}

inline int64_t warmup_length(const Schedule& schedule, int64_t t_max) {
  if (!schedule.warmup_fraction) return schedule.warmup;
  return round_fraction(*schedule.warmup_fraction, schedule.kind == ScheduleKind::kWsds ? schedule.periods.front() : t_max);
}

// `of`: the whole schedule, or for wsds a period.
inline int64_t decay_length(const Schedule& schedule, int64_t of) {
  return schedule.decay ? *schedule.decay : round_fraction(schedule.decay_fraction, of);
}

// A piece that does not say how long its curve is ends it where the next begins.
inline int64_t piece_horizon(const Schedule& piece, int64_t length) { return piece.t_max > 0 ? piece.t_max : length; }

}  // namespace dz::optim
