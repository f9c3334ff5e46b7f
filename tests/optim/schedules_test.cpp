#include "optim/schedules.h"

#include <gtest/gtest.h>

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
                                                      {"LinearWithWarmup", ScheduleKind::kLinear},
                                                      {"WSD", ScheduleKind::kWsd}};

Schedule schedule_of(const Json& row) {
  const Json& config = row["config"];
  Schedule schedule{.kind = kClasses.at(row["class"]), .lr = test::hex(row["initial_lr"])};
  schedule.t_max = config.value("t_max", row["t_max"].get<int64_t>());
  schedule.warmup = config.value("warmup", int64_t{0});
  if (config.contains("warmup_fraction")) schedule.warmup_fraction = config["warmup_fraction"].get<double>();
  schedule.warmup_min_lr = config.value("warmup_min_lr", 0.0);
  schedule.alpha_f = config.value("alpha_f", 0.1);
  if (config.contains("decay")) schedule.decay = config["decay"].get<int64_t>();
  schedule.decay_fraction = config.value("decay_fraction", 0.1);
  schedule.decay_min_lr = config.value("decay_min_lr", 0.0);
  return schedule;
}

int64_t ulps_apart(double a, double b) { return std::abs(std::bit_cast<int64_t>(a) - std::bit_cast<int64_t>(b)); }

TEST(Schedules, EqualOlmoCore) {
  int64_t points = 0, rows = 0, off_by_one = 0;
  const Json golden = test::golden_json("schedules.json");
  for (const Json& row : golden["rows"]) {
    if (!kClasses.contains(row["class"].get<std::string>())) continue;
    ++rows;
    const Schedule schedule = schedule_of(row);
    EXPECT_NO_THROW(check(schedule, "s"));
    for (const Json& point : row["lr"]) {
      if (schedule.kind == ScheduleKind::kWsd && point[0] > schedule.t_max) {  // the reference's rate is below the least one here
        EXPECT_LT(test::hex(point[1]), schedule.decay_min_lr);
        EXPECT_EQ(learning_rate(schedule, point[0].get<int64_t>()), schedule.decay_min_lr);
        continue;
      }
      const double ours = learning_rate(schedule, point[0].get<int64_t>()), theirs = test::hex(point[1]);
      const int64_t apart = ulps_apart(ours, theirs);
      EXPECT_LE(apart, schedule.kind == ScheduleKind::kCosine ? 1 : 0) << row["name"] << " at " << point[0] << ": " << ours << " " << theirs;
      off_by_one += apart != 0;
      ++points;
    }
  }
  EXPECT_GE(rows, 20);
  EXPECT_GE(points, 700);
  EXPECT_LE(off_by_one, points / 50);
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
  for (const ScheduleKind kind : {ScheduleKind::kConstant, ScheduleKind::kCosine, ScheduleKind::kLinear, ScheduleKind::kWsd})
    EXPECT_EQ(parse_schedule_kind(name_of(kind), ""), kind);
}

}  // namespace
}  // namespace dz::optim
