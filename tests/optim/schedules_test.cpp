#include "optim/schedules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "base/error.h"
#include "optim/golden.h"

namespace dz::optim {
namespace {

using test::Json;

const std::map<std::string, ScheduleKind> kClasses = {{"ConstantScheduler", ScheduleKind::kConstant},
                                                      {"ConstantWithWarmup", ScheduleKind::kConstant},
                                                      {"CosWithWarmup", ScheduleKind::kCosine},
                                                      {"HalfCosWithWarmup", ScheduleKind::kHalfCosine},
                                                      {"LinearWithWarmup", ScheduleKind::kLinear},
                                                      {"InvSqrtWithWarmup", ScheduleKind::kInverseSqrt},
                                                      {"CosWithWarmupAndLinearDecay", ScheduleKind::kCosineLinear},
                                                      {"WSD", ScheduleKind::kWsd},
                                                      {"WSDS", ScheduleKind::kWsds},
                                                      {"SequentialScheduler", ScheduleKind::kSequential}};

Schedule schedule_of(const std::string& class_name, const Json& config) {
  Schedule schedule{.kind = kClasses.at(class_name)};
  schedule.t_max = config.value("t_max", int64_t{0});
  schedule.warmup = config.value("warmup", int64_t{0});
  if (config.contains("warmup_fraction")) schedule.warmup_fraction = config["warmup_fraction"].get<double>();
  schedule.warmup_min_lr = config.value("warmup_min_lr", 0.0);
  schedule.alpha_f = config.value("alpha_f", 0.1);
  if (config.contains("decay")) schedule.decay = config["decay"].get<int64_t>();
  schedule.decay_fraction = config.value("decay_fraction", 0.1);
  schedule.decay_min_lr = config.value("decay_min_lr", 0.0);
  schedule.periods = config.value("period_lengths", std::vector<int64_t>{});
  if (config.contains("schedulers")) {
    for (const Json& piece : config["schedulers"]) {
      const std::string name = piece["_CLASS_"];
      schedule.pieces.push_back(schedule_of(name.substr(name.rfind('.') + 1), piece));
    }
    for (size_t i = 0; i < config["schedulers_max"].size(); ++i) schedule.pieces[i].length = config["schedulers_max"][i];
  }
  return schedule;
}

Schedule schedule_of(const Json& row) {
  Schedule schedule = schedule_of(row["class"], row["config"]);
  schedule.lr = test::hex(row["initial_lr"]);
  if (schedule.t_max == 0) schedule.t_max = row["t_max"];
  return schedule;
}

bool has_cosine(const Schedule& schedule) {
  if (schedule.kind == ScheduleKind::kCosine || schedule.kind == ScheduleKind::kHalfCosine || schedule.kind == ScheduleKind::kCosineLinear)
    return true;
  return std::any_of(schedule.pieces.begin(), schedule.pieces.end(), has_cosine);
}

int64_t ulps_apart(double a, double b) { return std::abs(std::bit_cast<int64_t>(a) - std::bit_cast<int64_t>(b)); }

// Every scheduler of OLMo-core 2.4.0 and every shape of the official recipes: bits; where a cosine is in it, 1 ulp of the cosine, which is libm's
// there. In the second half of a cosine 1 + cos is less than 1, and 1 ulp of cos up to 2 of the rate.
TEST(Schedules, EqualOlmoCore) {
  int64_t points = 0, rows = 0, off_by_one = 0, refused = 0, beyond = 0;
  const Json golden = test::golden_json("schedules.json");
  for (const Json& row : golden["rows"]) {
    ++rows;
    const Schedule schedule = schedule_of(row);
    EXPECT_NO_THROW(check(schedule, "s")) << row["name"];
    const bool falls_on = schedule.kind == ScheduleKind::kWsd || schedule.kind == ScheduleKind::kCosineLinear;
    for (const Json& point : row["lr"]) {
      if (point[1].get<std::string>().starts_with(
              "raises")) {  // inv_sqrt without a warm-up at 0, which no update uses, and a sequence beyond its end
        EXPECT_TRUE(point[0] == 0 || point[0] > schedule.t_max);
        ++refused;
        continue;
      }
      if (falls_on && point[0] > schedule.t_max) {  // the reference's rate is below the least one here
        EXPECT_LT(test::hex(point[1]), schedule.decay_min_lr);
        EXPECT_EQ(learning_rate(schedule, point[0].get<int64_t>()), schedule.decay_min_lr);
        ++beyond;
        continue;
      }
      const double ours = learning_rate(schedule, point[0].get<int64_t>()), theirs = test::hex(point[1]);
      const int64_t apart = ulps_apart(ours, theirs);
      EXPECT_LE(apart, schedule.kind == ScheduleKind::kHalfCosine ? 2
                       : has_cosine(schedule)                     ? 1
                                                                  : 0)
          << row["name"] << " at " << point[0] << ": " << ours << " " << theirs;
      off_by_one += apart != 0;
      ++points;
    }
  }
  EXPECT_EQ(rows, 45);
  EXPECT_EQ(refused, 3);
  EXPECT_EQ(beyond, 9);
  EXPECT_GE(points, 1700);
  EXPECT_LE(off_by_one, points / 50);
  RecordProperty("off_by_one", std::to_string(off_by_one));
}

// The two cosines that OLMo 3 7B was trained with: the first was stopped at half its length, the second begins there at the middle of its own.
// The single cosine over the whole run is another curve.
TEST(Schedules, TwoCosinesAndOne) {
  const Schedule first{.kind = ScheduleKind::kCosine, .warmup = 2000, .t_max = 1192093};
  const Schedule second{.kind = ScheduleKind::kHalfCosine, .warmup = 597046, .t_max = 1668931};
  const Schedule single{.kind = ScheduleKind::kCosine, .warmup = 2000, .t_max = 1413814};
  EXPECT_EQ(learning_rate(first, 476838), 0.00020712352850360292);  // the peak of stages 2 and 3
  EXPECT_NEAR(learning_rate(first, 597046), learning_rate(second, 597046), 2e-10);
  EXPECT_LT(learning_rate(second, 596048), learning_rate(first, 596048));  // its warm-up branch
  EXPECT_NEAR(learning_rate(second, 1413814), 3.93252716718148e-05, 1e-19);
  EXPECT_GT(learning_rate(single, 597046), 1.19 * learning_rate(first, 597046));
  EXPECT_EQ(learning_rate(single, 1413814), 0.1 * 3e-4);
}

// A change of the batch moves the peak by the root of the ratio, as BatchSizeSchedulerCallback does.
TEST(Schedules, PeakFollowsTheBatch) {
  const Json golden = test::golden_json("batch_warmup.json");
  EXPECT_EQ(golden["rows"].size(), 4u);
  for (const Json& row : golden["rows"]) {
    EXPECT_EQ(scaled_peak(3e-4, row["from"], row["to"]), test::hex(row["lr_after"]));
    EXPECT_NE(scaled_peak(3e-4, row["to"], row["from"]), test::hex(row["lr_after"]));
  }
}

// D5, rows 80, 81, 85: the rates used, the peak at step 10 and no earlier, and the same from the step alone after a resume.
TEST(Schedules, WarmupEdgeAndPeakAfterResume) {
  Schedule schedule{.kind = ScheduleKind::kCosine, .lr = 1.0, .warmup = 10, .alpha_f = 0.1, .t_max = 100};
  for (int64_t step = 1; step <= 10; ++step) EXPECT_DOUBLE_EQ(learning_rate(schedule, step), static_cast<double>(step) / 10);
  EXPECT_NEAR(learning_rate(schedule, 11), 0.999726, 5e-7);
  EXPECT_LT(learning_rate(schedule, 9), 1.0);  // a warm-up over one step less would reach the peak here
  const double expected[] = {0.761262, 0.747267, 0.733031, 0.718573, 0.703909};
  for (int64_t i = 0; i < 5; ++i) EXPECT_NEAR(learning_rate(schedule, 41 + i), expected[i], 5e-7);
  Schedule half = schedule;
  half.lr = 0.5;
  for (int64_t step = 41; step <= 45; ++step) EXPECT_DOUBLE_EQ(learning_rate(half, step), learning_rate(schedule, step) / 2);
}

// Row 83: the rate stays above its least value until the last step.
TEST(Schedules, NoEarlyEnd) {
  for (const ScheduleKind kind : {ScheduleKind::kCosine, ScheduleKind::kLinear, ScheduleKind::kWsd}) {
    const Schedule schedule{.kind = kind, .lr = 1.0, .warmup = 22, .alpha_f = 0.1, .decay_min_lr = 0.1, .t_max = 220};
    for (int64_t step = 195; step < 220; ++step) EXPECT_GT(learning_rate(schedule, step), 0.1) << name_of(kind) << step;
    EXPECT_DOUBLE_EQ(learning_rate(schedule, 220), 0.1);
  }
}

TEST(Schedules, MistakesAreNamed) {
  const auto message = [](const Schedule& schedule) -> std::string {
    try {
      check(schedule, "recipe.schedule");
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message({.warmup = 10, .t_max = 100}), "");
  EXPECT_EQ(message({.warmup = 2000, .t_max = 200}), "recipe.schedule.warmup: found 2000 steps, expected at most the 200 steps of the schedule");
  EXPECT_NE(message({.lr = 0, .t_max = 200}), "");
  EXPECT_NE(message({.lr = std::nan(""), .t_max = 200}), "");
  EXPECT_NE(message({.alpha_f = 1.5, .t_max = 200}), "");
  EXPECT_NE(message({.kind = ScheduleKind::kWsd, .warmup = 150, .decay = 51, .t_max = 200}), "");
  EXPECT_NE(message({.t_max = 0}), "");
  EXPECT_THROW(parse_schedule_kind("cosin", "recipe.schedule.name"), ConfigError);
  for (const auto& [name, kind] : kClasses) EXPECT_EQ(parse_schedule_kind(name_of(kind), ""), kind);
  EXPECT_NE(message({.warmup = 10, .warmup_fraction = 0.1, .t_max = 200}), "");
  EXPECT_NE(message({.kind = ScheduleKind::kWsds}), "");
  EXPECT_EQ(message({.kind = ScheduleKind::kWsds, .warmup = 40, .periods = {50, 9}}), "");
  EXPECT_NE(message({.kind = ScheduleKind::kWsds, .warmup = 46, .decay = 5, .periods = {50, 9}}), "");
  EXPECT_NE(message({.kind = ScheduleKind::kWsds, .decay = 10, .periods = {50, 9}}), "");
  EXPECT_NE(message({.kind = ScheduleKind::kHalfCosine, .warmup = 9, .warmup_min_lr = 2e-4, .t_max = 20}), "");  // its middle is 1.65e-4
  EXPECT_NE(message({.kind = ScheduleKind::kCosineLinear, .alpha_f = 0, .decay_min_lr = 1e-4, .t_max = 20}), "");

  const Schedule piece{.kind = ScheduleKind::kLinear, .alpha_f = 0, .length = 10}, tail{.kind = ScheduleKind::kConstant};
  EXPECT_NE(message({.kind = ScheduleKind::kSequential, .t_max = 20}), "");
  EXPECT_EQ(message({.kind = ScheduleKind::kSequential, .t_max = 20, .pieces = {{.kind = ScheduleKind::kLinear, .length = 10}, tail}}), "");
  // Where a piece begins is where the one before has ended: here 0, of which nothing can rise or fall.
  EXPECT_NE(message({.kind = ScheduleKind::kSequential, .t_max = 20, .pieces = {piece, tail}}).find("recipe.schedule.pieces[1].lr"),
            std::string::npos);
  EXPECT_NE(message({.kind = ScheduleKind::kSequential, .t_max = 10, .pieces = {piece, tail}}).find("pieces[0].length"), std::string::npos);
  EXPECT_NE(message({.kind = ScheduleKind::kSequential, .t_max = 20, .pieces = {piece, piece}}), "");
  EXPECT_NE(message({.kind = ScheduleKind::kSequential, .t_max = 20, .pieces = {{.kind = ScheduleKind::kSequential}}}), "");
}

}  // namespace
}  // namespace dz::optim
