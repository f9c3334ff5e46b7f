#include "optim/schedules.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "numerics/functions64.h"
#include "optim/schedule_lengths.h"

namespace dz::optim {
namespace {

constexpr double kPi = 0x1.921fb54442d18p+1;

// From `low` at 0 to `high` at `length`.
double ramp(double low, double high, int64_t current, int64_t length) {
  return low + (high - low) * static_cast<double>(std::min(current, length)) / static_cast<double>(length);
}

// Half a turn of the cosine: from lr at 0 to `end` at `length`.
double cosine(double lr, double end, int64_t current, int64_t length) {
  return end + (lr - end) * (1 + numerics::cos(kPi * static_cast<double>(current) / static_cast<double>(length))) / 2;
}

double cosine_after_warmup(const Schedule& schedule, double lr, int64_t position, int64_t t_max) {
  const int64_t warmup = warmup_length(schedule, t_max);
  if (position < warmup) return ramp(schedule.warmup_min_lr, lr, position, warmup);
  const double end = lr * schedule.alpha_f;
  return position >= t_max ? end : cosine(lr, end, position - warmup, t_max - warmup);
}

double cosine_linear(const Schedule& schedule, double lr, int64_t position, int64_t t_max) {
  const int64_t decay = decay_length(schedule, t_max);
  if (decay == 0 || position < t_max - decay) return cosine_after_warmup(schedule, lr, position, t_max);
  const double from = cosine_after_warmup(schedule, lr, t_max - decay, t_max);
  return ramp(schedule.decay_min_lr, from, std::max(t_max - position, int64_t{0}), decay);
}

double wsds(const Schedule& schedule, double lr, int64_t position) {
  const int64_t warmup = warmup_length(schedule, 0);
  if (position < warmup) return ramp(schedule.warmup_min_lr, lr, position, warmup);
  int64_t end = 0;
  for (const int64_t& period : schedule.periods) {
    end += period;
    // A period holds its last position; the peak comes back with the first of the next.
    if (position > end || (position == end && &period == &schedule.periods.back())) continue;
    const int64_t decay = decay_length(schedule, period);
    return decay == 0 || position < end - decay ? lr : ramp(schedule.decay_min_lr, lr, end - position, decay);
  }
  return schedule.decay_min_lr;
}

double rate(const Schedule& schedule, double lr, int64_t position, int64_t t_max);

// Piece after piece, each in its own count of positions and from the rate at which the one before has ended.
double sequential(const Schedule& schedule, double lr, int64_t position, int64_t t_max) {
  position = std::min(position, t_max);
  for (const Schedule& piece : schedule.pieces) {
    const bool last = &piece == &schedule.pieces.back();
    if (last || position <= piece.length) return rate(piece, lr, position, piece_horizon(piece, last ? t_max : std::min(t_max, piece.length)));
    lr = rate(piece, lr, piece.length, piece_horizon(piece, piece.length));
    position -= piece.length;
    t_max -= piece.length;
  }
  return lr;
}

double rate(const Schedule& schedule, double lr, int64_t position, int64_t t_max) {
  const double end = lr * schedule.alpha_f;
  const int64_t warmup = warmup_length(schedule, t_max);
  switch (schedule.kind) {
    case ScheduleKind::kConstant:
      // Constant and wsd count the position `warmup` into the warm-up, the others do not: one value by two formulas, whose bits may differ.
      return warmup > 0 && position <= warmup ? ramp(schedule.warmup_min_lr, lr, position, warmup) : lr;
    case ScheduleKind::kWsd: {
      if (warmup > 0 && position <= warmup) return ramp(schedule.warmup_min_lr, lr, position, warmup);
      const int64_t decay = decay_length(schedule, t_max);
      if (decay == 0 || position < t_max - decay) return lr;
      return ramp(schedule.decay_min_lr, lr, std::max(t_max - position, int64_t{0}), decay);
    }
    case ScheduleKind::kCosine:
      return cosine_after_warmup(schedule, lr, position, t_max);
    case ScheduleKind::kHalfCosine: {
      // The second half of a cosine whose first half would have been as long: the warm-up leads to the middle between lr and the end.
      if (position < warmup) return ramp(schedule.warmup_min_lr, end + (lr - end) / 2, position, warmup);
      const int64_t length = t_max - warmup;
      return position >= t_max ? end : cosine(lr, end, position - warmup + length, 2 * length);
    }
    case ScheduleKind::kLinear: {
      if (position < warmup) return ramp(schedule.warmup_min_lr, lr, position, warmup);
      if (position >= t_max) return end;
      return lr - (lr - end) * (static_cast<double>(position - warmup) / static_cast<double>(t_max - warmup));
    }
    case ScheduleKind::kInverseSqrt: {
      if (position < warmup) return ramp(schedule.warmup_min_lr, lr, position, warmup);
      return warmup == 0 ? end : end + (lr - end) * __builtin_sqrt(static_cast<double>(warmup) / static_cast<double>(position));
    }
    case ScheduleKind::kCosineLinear:
      return cosine_linear(schedule, lr, position, t_max);
    case ScheduleKind::kWsds:
      return wsds(schedule, lr, position);
    case ScheduleKind::kSequential:
      return sequential(schedule, lr, position, t_max);
  }
  return lr;
}

}  // namespace

double learning_rate(const Schedule& schedule, int64_t position) {
  DZ_CHECK(position >= 0, "position", position);
  return rate(schedule, schedule.lr, position, schedule.t_max);
}

double scaled_peak(double lr, int64_t from_batch, int64_t to_batch) {
  DZ_CHECK(from_batch > 0 && to_batch > 0, "from", from_batch, "to", to_batch);
  return lr * __builtin_sqrt(static_cast<double>(to_batch) / static_cast<double>(from_batch));
}

}  // namespace dz::optim
