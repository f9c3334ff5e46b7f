#include "train/schedule_keys.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "train/config.h"

namespace dz::train {
namespace {

using optim::ScheduleKind;

Config parse(const std::string& schedule, const std::string& data = "", int64_t steps = 1000) {
  const std::string text = "recipe:\n  steps: " + std::to_string(steps) +
                           "\n  batch: 128\n"
                           "  data: {source: generated, sequence_length: 16, generated: {tokens: 1000, documents: 10}" +
                           data +
                           "}\n"
                           "  model: {d_model: 32, n_layers: 4, n_heads: 4, d_ff: 48, vocab_size: 64, window: 4}\n"
                           "  optimizer: {lr: 0.0003}\n"
                           "  schedule: {" +
                           schedule + "}\nrun: {dir: runs/a}\n";
  return parse_config(text, "a.yaml", "/base", {});
}

std::string message(const std::string& schedule) {
  try {
    parse(schedule);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

double rate(const Config& config, int64_t step, int64_t tokens = 0) { return learning_rate(config.recipe, step, tokens); }

// The official recipe of OLMo 3 7B stops its first cosine at half its length.
TEST(ScheduleKeys, AStopBeforeTheEndLeavesTheCurve) {
  const Config stopped = parse("warmup: 2000, t_max: 1192093", "", 597046), whole = parse("warmup: 2000", "", 1192093);
  EXPECT_EQ(stopped.recipe.schedule.t_max, 1192093);
  for (const int64_t step : {1, 2000, 476838, 597046}) EXPECT_EQ(rate(stopped, step), rate(whole, step));
  EXPECT_NE(rate(parse("warmup: 2000", "", 597046), 476838), rate(whole, 476838));
  EXPECT_EQ(rate(stopped, 476838), 0.00020712352850360292);
  EXPECT_EQ(describe_schedule(stopped.recipe), "cosine to step 1192093, warm-up 2000, peak 0.0003");
}

TEST(ScheduleKeys, NewKeysLeaveTheIdentityOfRecipesWithoutThem) {
  const auto hash = [](const Config& config) { return identify(config.recipe, "d", "").hash(); };
  const std::string plain = hash(parse("warmup: 10"));
  EXPECT_EQ(plain, hash(parse("warmup: 10, t_max: 0, units: steps, warmup_fraction: -1, periods: [], pieces: [], batch_scaling: none")));
  for (const std::string schedule :
       {"warmup: 10, t_max: 2000", "warmup_fraction: 0.01", "warmup: 10, batch_scaling: sqrt", "warmup: 10, units: tokens, t_max: 1000"}) {
    const Config config = parse(schedule);
    EXPECT_NE(hash(config), plain) << schedule;
    EXPECT_EQ(hash(config), hash(parse_config(recipe_yaml(config.recipe) + run_yaml(config.run), "again.yaml", "/base", {}))) << schedule;
  }
}

TEST(ScheduleKeys, PiecesAreReadStrictly) {
  const Config config = parse("name: sequential, pieces: [\"cosine length=500 warmup=100\", \" linear  alpha_f=0\"]");
  const auto& pieces = config.recipe.schedule.pieces;
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].kind, ScheduleKind::kCosine);
  EXPECT_EQ(pieces[0].warmup, 100);
  EXPECT_EQ(pieces[1].alpha_f, 0);
  EXPECT_DOUBLE_EQ(rate(config, 100), 3e-4);
  EXPECT_NEAR(rate(config, 500), 3e-5, 1e-19);
  EXPECT_NEAR(rate(config, 750), 1.5e-5, 1e-19);
  EXPECT_EQ(rate(config, 1000), 0);
  EXPECT_EQ(describe_schedule(config.recipe), "sequential to step 1000, first cosine length=500 warmup=100, peak 0.0003");

  const auto piece = [](const std::string& text) { return message("name: sequential, pieces: [\"" + text + "\", constant]"); };
  EXPECT_EQ(piece("linear length=5"), "");
  EXPECT_NE(piece("linear length=5 warmpu=1").find("recipe.schedule.pieces[0].warmpu: found an unknown key"), std::string::npos);
  EXPECT_NE(piece("linaer length=5").find("linaer"), std::string::npos);
  for (const std::string bad :
       {"", "linear", "linear length", "linear length=", "linear length=-5", "linear length=5x", "linear length=5.5", "linear length=5 length=5",
        "linear length=1000", "linear length=5 decay=1", "linear length=5 alpha_f=nan", "linear length=5 alpha_f=2",
        "linear length=99999999999999999999", "sequential length=5", "wsds length=5 periods=3,", "constant length=5 alpha_f=0.1"}) {
    EXPECT_NE(piece(bad), "") << bad;
  }
  EXPECT_EQ(piece("wsds length=5 periods=3,2 decay=1 decay_min_lr=1e-5"), "");
  EXPECT_NE(piece("wsds length=5 periods=3,2 decay=1").find("pieces[1].lr: found 0"), std::string::npos);  // nothing is left to go on with
}

TEST(ScheduleKeys, KeysThatTheScheduleDoesNotReadAreRefused) {
  EXPECT_NE(message("name: constant, alpha_f: 0.2").find("recipe.schedule.alpha_f"), std::string::npos);
  EXPECT_NE(message("decay: 3").find("recipe.schedule.decay"), std::string::npos);
  EXPECT_NE(message("periods: [10]").find("recipe.schedule.periods"), std::string::npos);
  EXPECT_NE(message("pieces: [constant]").find("recipe.schedule.pieces"), std::string::npos);
  EXPECT_NE(message("name: sequential, warmup: 3, pieces: [constant]").find("recipe.schedule.warmup"), std::string::npos);
  EXPECT_NE(message("name: wsds, periods: [10.5]").find("recipe.schedule.periods"), std::string::npos);
  EXPECT_NE(message("warmup_fraction: -0.5").find("recipe.schedule.warmup_fraction"), std::string::npos);
  EXPECT_EQ(message("name: wsds, periods: [600, 400], warmup: 10"), "");
}

TEST(ScheduleKeys, TokensAsTheUnit) {
  EXPECT_NE(message("units: tokens").find("recipe.schedule.t_max"), std::string::npos);
  const Config config = parse("units: tokens, t_max: 2048000, warmup: 20480"), steps = parse("t_max: 1000, warmup: 10");
  for (const int64_t step : {1, 9, 10, 500, 1000}) EXPECT_EQ(rate(config, step, step * 2048), rate(steps, step));
  EXPECT_NE(rate(config, 5, 4 * 2048), rate(steps, 5));  // tokens without those of the batch
}

// The peak belongs to recipe.batch; a smaller batch at the start has a smaller one.
TEST(ScheduleKeys, ThePeakFollowsTheBatch) {
  const std::string stages = ", warm_up: {batch: [\"1:32\", \"10:64\", \"20:128\"]}";
  const Config config = parse("name: constant, batch_scaling: sqrt", stages), without = parse("name: constant", stages);
  EXPECT_EQ(rate(config, 9), 3e-4 * 0.5);
  EXPECT_EQ(rate(config, 10), 3e-4 * 0.5 * std::sqrt(2.0));
  EXPECT_EQ(rate(config, 20), 3e-4 * 0.5 * std::sqrt(2.0) * std::sqrt(2.0));
  EXPECT_EQ(rate(without, 9), 3e-4);
}

}  // namespace
}  // namespace dz::train
