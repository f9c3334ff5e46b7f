#include "train/schedule_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "base/error.h"
#include "train/recipe.h"

namespace dz::train {
namespace {

using optim::ScheduleKind;

constexpr double kMany = 1e15;

// Whether a schedule of this kind looks at the key.
bool reads(ScheduleKind kind, std::string_view key) {
  const auto is = [&](auto... kinds) { return ((kind == kinds) || ...); };
  if (key == "pieces") return is(ScheduleKind::kSequential);
  if (key == "periods") return is(ScheduleKind::kWsds);
  if (key == "t_max") return !is(ScheduleKind::kWsds);
  if (key.starts_with("warmup")) return !is(ScheduleKind::kSequential);
  if (key.starts_with("decay")) return is(ScheduleKind::kWsd, ScheduleKind::kWsds, ScheduleKind::kCosineLinear);
  if (key == "alpha_f")
    return is(ScheduleKind::kCosine, ScheduleKind::kHalfCosine, ScheduleKind::kLinear, ScheduleKind::kInverseSqrt, ScheduleKind::kCosineLinear);
  return true;
}

template <class Number>
Number read_number(std::string_view text, const std::string& where) {
  Number value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || !(value >= 0) || !(static_cast<double>(value) <= kMany))
    throw ConfigError(Complaint{.where = where, .found = std::string(text), .expected = "a number of at least 0", .hint = ""});
  return value;
}

std::vector<int64_t> read_periods(std::string_view text, const std::string& where) {
  std::vector<int64_t> periods;
  while (true) {
    const size_t comma = std::min(text.find(','), text.size());
    periods.push_back(read_number<int64_t>(text.substr(0, comma), where));
    if (comma == text.size()) return periods;
    text.remove_prefix(comma + 1);
  }
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t begin = text.find_first_not_of(' '); begin != std::string_view::npos; begin = text.find_first_not_of(' ', begin)) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

void set_key(optim::Schedule& piece, std::string_view key, std::string_view value, const std::string& where) {
  constexpr const char* kKeys = "length, warmup, warmup_fraction, warmup_min_lr, alpha_f, decay, decay_fraction, decay_min_lr, t_max, periods";
  const auto length = [&] { return read_number<int64_t>(value, where); };
  const auto number = [&] { return read_number<double>(value, where); };
  if (key == "length") {
    piece.length = length();
  } else if (key == "warmup") {
    piece.warmup = length();
  } else if (key == "warmup_fraction") {
    piece.warmup_fraction = number();
  } else if (key == "warmup_min_lr") {
    piece.warmup_min_lr = number();
  } else if (key == "alpha_f") {
    piece.alpha_f = number();
  } else if (key == "decay") {
    piece.decay = length();
  } else if (key == "decay_fraction") {
    piece.decay_fraction = number();
  } else if (key == "decay_min_lr") {
    piece.decay_min_lr = number();
  } else if (key == "t_max") {
    piece.t_max = length();
  } else if (key == "periods") {
    piece.periods = read_periods(value, where);
  } else {
    throw ConfigError(Complaint{.where = where, .found = "an unknown key", .expected = fmt::format("one of {}", kKeys), .hint = ""});
  }
}

// A key that says something but is not looked at.
void refuse_unread(const optim::Schedule& schedule, const ScheduleKeys& keys, const std::string& where) {
  const optim::Schedule usual;
  const std::pair<const char*, bool> given[] = {{"warmup", schedule.warmup != usual.warmup},
                                                {"warmup_fraction", schedule.warmup_fraction.has_value()},
                                                {"warmup_min_lr", schedule.warmup_min_lr != usual.warmup_min_lr},
                                                {"alpha_f", schedule.alpha_f != usual.alpha_f},
                                                {"decay", schedule.decay.has_value()},
                                                {"decay_fraction", schedule.decay_fraction != usual.decay_fraction},
                                                {"decay_min_lr", schedule.decay_min_lr != usual.decay_min_lr},
                                                {"t_max", keys.t_max != 0},
                                                {"periods", !keys.periods.empty()},
                                                {"pieces", !keys.pieces.empty()}};
  for (const auto& [key, says] : given) {
    if (!says || reads(schedule.kind, key)) continue;
    throw ConfigError(Complaint{.where = where + "." + key,
                                .found = "a value",
                                .expected = fmt::format("no such key with the schedule \"{}\", which does not read it", name_of(schedule.kind)),
                                .hint = ""});
  }
}

}  // namespace

void visit_schedule(FieldVisitor& visitor, optim::Schedule& schedule, ScheduleKeys& keys) {
  visitor.enter("schedule", "of the learning rate");
  choice(visitor, {.key = "name", .help = ""},
         {"constant", "cosine", "linear", "wsd", "half_cosine", "inv_sqrt", "cosine_linear", "wsds", "sequential"}, schedule.kind);
  choice(visitor, {.key = "units", .help = "of all lengths here", .added = true}, {"steps", "tokens"}, keys.in_tokens);
  visitor.field({.key = "t_max", .help = "length of the schedule; 0: recipe.steps", .least = 0, .most = kMany, .added = true}, keys.t_max);
  visitor.field({.key = "warmup", .help = "steps up to the peak", .least = 0, .most = kMany}, schedule.warmup);
  double fraction = schedule.warmup_fraction.value_or(-1);
  visitor.field({.key = "warmup_fraction", .help = "of t_max instead; -1: warmup", .least = -1, .most = 1, .added = true}, fraction);
  schedule.warmup_fraction = fraction == -1 ? std::nullopt : std::optional(fraction);
  visitor.field({.key = "warmup_min_lr", .help = "where they start", .least = 0, .most = 1e3}, schedule.warmup_min_lr);
  visitor.field({.key = "alpha_f", .help = "cosine, linear: the end, as a share of the peak", .least = 0, .most = 1}, schedule.alpha_f);
  int64_t decay = schedule.decay.value_or(-1);
  visitor.field({.key = "decay", .help = "wsd: last steps, falling; -1: decay_fraction", .least = -1, .most = kMany}, decay);
  schedule.decay = decay < 0 ? std::nullopt : std::optional(decay);
  visitor.field({.key = "decay_fraction", .help = "wsd: of all steps", .least = 0, .most = 1}, schedule.decay_fraction);
  visitor.field({.key = "decay_min_lr", .help = "wsd: where they end", .least = 0, .most = 1e3}, schedule.decay_min_lr);
  visitor.field({.key = "periods", .help = "wsds: their lengths", .least = 1, .most = kMany, .added = true}, keys.periods);
  visitor.field({.key = "pieces", .help = "sequential: as in [\"cosine length=500 warmup=100\", \"linear alpha_f=0\"]", .added = true}, keys.pieces);
  choice(visitor, {.key = "batch_scaling", .help = "of the peak, when data.warm_up.batch changes the batch", .added = true}, {"none", "sqrt"},
         keys.scaled_by_batch);
  visitor.leave();
}

optim::Schedule parse_piece(std::string_view text, const std::string& where) {
  const std::vector<std::string_view> words = words_of(text);
  optim::Schedule piece;
  piece.kind = optim::parse_schedule_kind(words.empty() ? "" : words.front(), where);
  std::set<std::string_view> seen;
  for (size_t i = 1; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    const std::string_view key = words[i].substr(0, equals);
    const std::string at = fmt::format("{}.{}", where, key);
    if (equals == std::string_view::npos)
      throw ConfigError(Complaint{.where = where, .found = std::string(words[i]), .expected = "KEY=VALUE", .hint = ""});
    if (!seen.insert(key).second) throw ConfigError(Complaint{.where = at, .found = "the key twice", .expected = "once", .hint = ""});
    set_key(piece, key, words[i].substr(equals + 1), at);
    if (reads(piece.kind, key)) continue;
    throw ConfigError(Complaint{.where = at,
                                .found = "this key",
                                .expected = fmt::format("no such key with \"{}\", which does not read it", name_of(piece.kind)),
                                .hint = ""});
  }
  return piece;
}

void complete_schedule(optim::Schedule& schedule, const ScheduleKeys& keys, int64_t steps, const std::string& where) {
  refuse_unread(schedule, keys, where);
  if (schedule.warmup_fraction && *schedule.warmup_fraction < 0) {
    throw ConfigError(Complaint{.where = where + ".warmup_fraction",
                                .found = fmt::format("{}", *schedule.warmup_fraction),
                                .expected = "0 to 1, or -1 for warmup",
                                .hint = ""});
  }
  schedule.periods.clear();
  for (const double period : keys.periods) {
    if (std::floor(period) != period) {
      throw ConfigError(Complaint{.where = where + ".periods", .found = fmt::format("{}", period), .expected = "whole numbers", .hint = ""});
    }
    schedule.periods.push_back(static_cast<int64_t>(period));
  }
  schedule.pieces.clear();
  for (size_t i = 0; i < keys.pieces.size(); ++i) schedule.pieces.push_back(parse_piece(keys.pieces[i], fmt::format("{}.pieces[{}]", where, i)));
  schedule.t_max = keys.t_max > 0 ? keys.t_max : steps;
  if (schedule.kind == ScheduleKind::kWsds) {
    double total = 0;
    for (const double period : keys.periods) total += period;
    schedule.t_max = static_cast<int64_t>(std::min(total, kMany));
  } else if (keys.in_tokens && keys.t_max == 0) {
    throw ConfigError(Complaint{.where = where + ".t_max",
                                .found = "nothing",
                                .expected = "the tokens of the whole schedule",
                                .hint = "units: tokens has no length of its own; recipe.steps are steps"});
  }
  optim::check(schedule, where);
}

double learning_rate(const Recipe& recipe, int64_t step, int64_t tokens) {
  optim::Schedule schedule = recipe.schedule;
  if (recipe.schedule_keys.scaled_by_batch) {
    int64_t batch = recipe.batch;
    for (const Stage& stage : parse_stages(recipe.data.warm_up.batch, "recipe.data.warm_up.batch")) {
      if (stage.from_step > step) break;
      schedule.lr = optim::scaled_peak(schedule.lr, batch, stage.value);
      batch = stage.value;
    }
  }
  return optim::learning_rate(schedule, recipe.schedule_keys.in_tokens ? tokens : step);
}

std::string describe_schedule(const Recipe& recipe) {
  const optim::Schedule& schedule = recipe.schedule;
  std::string warmup = schedule.warmup_fraction ? fmt::format("{:g} of it", *schedule.warmup_fraction) : std::to_string(schedule.warmup);
  if (schedule.kind == ScheduleKind::kSequential) warmup = recipe.schedule_keys.pieces.front();
  return fmt::format("{} to {} {}, {} {}, peak {:g}{}", name_of(schedule.kind), recipe.schedule_keys.in_tokens ? "token" : "step", schedule.t_max,
                     schedule.kind == ScheduleKind::kSequential ? "first" : "warm-up", warmup, schedule.lr,
                     recipe.schedule_keys.scaled_by_batch ? " times the root of batch / " + std::to_string(recipe.batch) : "");
}

}  // namespace dz::train
