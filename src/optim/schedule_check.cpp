#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "optim/schedule_lengths.h"
#include "optim/schedules.h"

namespace dz::optim {
namespace {

constexpr std::array<std::string_view, 9> kNames = {"constant", "cosine",        "linear", "wsd",       "half_cosine",
                                                    "inv_sqrt", "cosine_linear", "wsds",   "sequential"};
constexpr int64_t kMost = int64_t{1} << 53;  // exact in a double

[[noreturn]] void refuse(const std::string& where, const char* key, const std::string& found, const std::string& expected) {
  throw ConfigError(Complaint{.where = where + "." + key, .found = found, .expected = expected, .hint = ""});
}

bool is_fraction(double x) { return x >= 0 && x <= 1; }

void check_low(const std::string& where, const char* key, double low, double high) {
  if (!(low >= 0 && low < high)) refuse(where, key, fmt::format("{}", low), fmt::format("0 or more and below the peak {}", high));
}

// `length`: of the schedule, or of its first period.
void check_warmup(const Schedule& schedule, const std::string& where, double lr, int64_t length) {
  if (schedule.warmup_fraction && !is_fraction(*schedule.warmup_fraction))
    refuse(where, "warmup_fraction", fmt::format("{}", *schedule.warmup_fraction), "0 to 1");
  if (schedule.warmup < 0) refuse(where, "warmup", fmt::format("{}", schedule.warmup), "0 or more steps");
  if (schedule.warmup_fraction && schedule.warmup > 0)
    refuse(where, "warmup_fraction", fmt::format("{} and warmup {}", *schedule.warmup_fraction, schedule.warmup), "one of the two");
  check_low(where, "warmup_min_lr", schedule.warmup_min_lr, lr);
  const int64_t warmup = warmup_length(schedule, length);
  if (warmup > length) refuse(where, "warmup", fmt::format("{} steps", warmup), fmt::format("at most the {} steps of the schedule", length));
}

void check_decay(const Schedule& schedule, const std::string& where, double lr, int64_t length, int64_t warmup) {
  if (schedule.decay && *schedule.decay < 0) refuse(where, "decay", fmt::format("{}", *schedule.decay), "0 or more steps");
  if (!is_fraction(schedule.decay_fraction)) refuse(where, "decay_fraction", fmt::format("{}", schedule.decay_fraction), "0 to 1");
  check_low(where, "decay_min_lr", schedule.decay_min_lr, lr);
  const int64_t decay = decay_length(schedule, length);
  if (decay > length - warmup) {
    refuse(where, "decay", fmt::format("{} steps", decay),
           fmt::format("at most {}: {} steps less the warm-up of {}", length - warmup, length, warmup));
  }
}

void check_periods(const Schedule& schedule, const std::string& where) {
  if (schedule.periods.empty()) refuse(where, "periods", "nothing", "the lengths of the periods of wsds");
  int64_t total = 0;
  for (const int64_t& period : schedule.periods) {
    if (period < 1 || period > kMost - total) refuse(where, "periods", fmt::format("{}", period), "at least 1, and together at most 2^53");
    total += period;
  }
  check_warmup(schedule, where, schedule.lr, schedule.periods.front());
  for (const int64_t& period : schedule.periods) {
    const bool first = &period == &schedule.periods.front();
    check_decay(schedule, where, schedule.lr, period, first ? warmup_length(schedule, period) : 0);
  }
}

void check_pieces(const Schedule& schedule, const std::string& where) {
  if (schedule.pieces.empty()) refuse(where, "pieces", "nothing", "a list such as [\"cosine length=500 warmup=100\", \"linear alpha_f=0\"]");
  double lr = schedule.lr;
  int64_t left = schedule.t_max;
  for (size_t i = 0; i < schedule.pieces.size(); ++i) {
    Schedule piece = schedule.pieces[i];
    const std::string at = fmt::format("{}.pieces[{}]", where, i);
    const bool last = i + 1 == schedule.pieces.size();
    if (piece.kind == ScheduleKind::kSequential) refuse(at, "name", "sequential", "a schedule that is no sequence itself");
    if (!last && (piece.length < 1 || piece.length >= left)) {
      refuse(at, "length", piece.length == 0 ? "nothing" : fmt::format("{}", piece.length),
             left > 1 ? fmt::format("1 to {}, so that something is left for the next piece", left - 1)
                      : "pieces that together are shorter than the schedule");
    }
    if (last && piece.length != 0) refuse(at, "length", fmt::format("{}", piece.length), "nothing: the last piece goes on to the end");
    piece.lr = lr;
    piece.t_max = piece_horizon(piece, last ? left : piece.length);
    check(piece, at);
    if (last) break;
    lr = learning_rate(piece, piece.length);
    left -= piece.length;
  }
}

}  // namespace

std::string_view name_of(ScheduleKind kind) { return kNames[static_cast<size_t>(kind)]; }

ScheduleKind parse_schedule_kind(std::string_view name, const std::string& where) {
  const auto found = std::ranges::find(kNames, name);
  if (found != kNames.end()) return static_cast<ScheduleKind>(found - kNames.begin());
  throw ConfigError(
      Complaint{.where = where, .found = fmt::format("\"{}\"", name), .expected = fmt::format("one of {}", fmt::join(kNames, ", ")), .hint = ""});
}

void check(const Schedule& schedule, const std::string& where) {
  if (!(schedule.lr > 0) || !std::isfinite(schedule.lr))
    refuse(where, "lr", fmt::format("{}", schedule.lr), "a positive number (the peak: recipe.optimizer.lr)");
  if (schedule.kind == ScheduleKind::kWsds) return check_periods(schedule, where);
  if (schedule.t_max < 1 || schedule.t_max > kMost) refuse(where, "t_max", fmt::format("{}", schedule.t_max), "1 to 2^53");
  if (schedule.kind == ScheduleKind::kSequential) return check_pieces(schedule, where);
  if (!is_fraction(schedule.alpha_f)) refuse(where, "alpha_f", fmt::format("{}", schedule.alpha_f), "0 to 1");
  const double end = schedule.lr * schedule.alpha_f;
  const bool half = schedule.kind == ScheduleKind::kHalfCosine;
  check_warmup(schedule, where, half ? end + (schedule.lr - end) / 2 : schedule.lr, schedule.t_max);
  const int64_t warmup = warmup_length(schedule, schedule.t_max);
  if (schedule.kind == ScheduleKind::kWsd) check_decay(schedule, where, schedule.lr, schedule.t_max, warmup);
  if (schedule.kind == ScheduleKind::kCosineLinear) {
    check_decay(schedule, where, schedule.lr, schedule.t_max, warmup);
    const int64_t decay = decay_length(schedule, schedule.t_max);
    Schedule cosine = schedule;
    cosine.kind = ScheduleKind::kCosine;
    if (decay > 0) check_low(where, "decay_min_lr", schedule.decay_min_lr, learning_rate(cosine, schedule.t_max - decay));
  }
}

}  // namespace dz::optim
