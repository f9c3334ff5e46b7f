// What a step and a run must never do: let a NaN in, be moved by an evaluation, carry over what a new run should not have.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "base/error.h"
#include "checkpoint/store.h"
#include "data/orders.h"
#include "model/init.h"
#include "model/transformer.h"
#include "runs.h"

namespace dz::train::test {
namespace {

std::string state_digest(const TrainState& state, ThreadPool& pool) {
  return checkpoint::digest_tensors(state.parameters.views(), pool).total.hex() +
         checkpoint::digest_tensors(state.exp_avg.views(), pool).total.hex() + checkpoint::digest_tensors(state.exp_avg_sq.views(), pool).total.hex();
}

TEST(Rules, ANanLossChangesNothingButTheStepCounter) {
  Config config = load_config(contract_config(), {});
  ThreadPool pool(2);
  const TrainingData data = open_data(config.recipe, {}, pool);
  const auto order = dz::test::keyed_order(data.dataset->instances(), config.recipe.batch, config.recipe.data.seed);
  TrainState state(config.recipe);
  model::init_parameters(config.recipe.seed, state.parameters, pool);
  Stepper stepper(config.recipe, config.topology, pool);
  stepper.step(state, data::make_batch(*data.dataset, *order, 1, true));
  float& weight = state.parameters.tensor(state.parameters.index_of("model.norm.weight"))[3];
  const float good = weight;
  const std::string window = state.guard.to_json();

  weight = std::nanf("");
  const std::string before = state_digest(state, pool);
  const StepReport report = stepper.step(state, data::make_batch(*data.dataset, *order, 2, true));
  EXPECT_TRUE(report.skipped);
  EXPECT_TRUE(std::isnan(report.loss));
  EXPECT_EQ(state_digest(state, pool), before);
  EXPECT_EQ(state.adam_step, 1);
  EXPECT_EQ(state.step, 2);
  EXPECT_EQ(state.guard.consecutive_skips(), 1);
  EXPECT_EQ(nlohmann::json::parse(state.guard.to_json())["losses"], nlohmann::json::parse(window)["losses"]);

  weight = good;
  EXPECT_FALSE(stepper.step(state, data::make_batch(*data.dataset, *order, 3, true)).skipped);
  EXPECT_EQ(state.adam_step, 2);
}

TEST(Rules, TooManySkipsInARowEndTheRunWithItsCheckpointWhole) {
  TempDir temp;
  // At a thousandth of a deviation everything above the mean stands out.
  const std::vector<std::string> sets = {"recipe.optimizer.skip_step.sigma=0.001", "recipe.optimizer.skip_step.window=4",
                                         "recipe.optimizer.skip_step.max_consecutive=3", "run.checkpoint_every=1", "run.keep=2"};
  EXPECT_THROW(train_contract(temp / "a", sets), DivergedError);
  const auto lines = metrics(temp / "a");
  ASSERT_GE(lines.size(), 4u);
  for (size_t i = lines.size() - 3; i < lines.size(); ++i) EXPECT_TRUE(lines[i]["skipped"].get<bool>());
  EXPECT_FALSE(lines[lines.size() - 4]["skipped"].get<bool>());
  const checkpoint::Newest newest = checkpoint::find_newest(temp / "a" / "checkpoints");
  ASSERT_TRUE(newest.checkpoint.has_value());
  EXPECT_TRUE(newest.skipped.empty());
}

// Weights that are not finite are never saved: the last good checkpoint stays the newest.
TEST(Rules, WeightsThatOverflowAreNotSaved) {
  TempDir temp;
  const std::vector<std::string> sets = {"recipe.optimizer.lr=1000", "recipe.optimizer.max_grad_norm=0", "recipe.schedule.warmup=0",
                                         "run.checkpoint_every=1", "run.keep=2"};
  EXPECT_THROW(train_contract(temp / "a", sets), DivergedError);
  const checkpoint::Newest newest = checkpoint::find_newest(temp / "a" / "checkpoints");
  ASSERT_TRUE(newest.checkpoint.has_value());
  EXPECT_EQ(newest.checkpoint->step + 1, metrics(temp / "a").back()["step"]);
}

// An evaluation between steps leaves no trace in what follows.
TEST(Rules, LandmarksDoNotMoveABit) {
  TempDir temp;
  const std::vector<std::string> sets = {"recipe.steps=6", "recipe.schedule.warmup=2", "run.digest_every=6"};
  train_contract(temp / "without", sets);
  int evaluations = 0;
  const LandmarkHook evaluate = [&](const Config& config, const TrainingData& data, const TrainState& state, const fs::path& directory,
                                    ThreadPool& pool, Progress&) {
    model::Transformer<bf16> engine(config.recipe.model, {.max_instances = 2, .seq = config.recipe.data.sequence_length, .backward = false}, pool);
    engine.set_weights(state.parameters);
    const data::Batch batch = data::make_batch(*data.dataset, {5, 7}, true);
    model::LossOut loss;
    engine.forward_loss({2, batch.sequence_length, batch.tokens.data(), batch.targets.data(), batch.first_visible.data()}, loss);
    EXPECT_GT(loss.ce[0], 0);
    fs::create_directories(directory);
    ++evaluations;
  };
  std::vector<std::string> with = sets;
  with.push_back("run.landmarks.every=2");
  with.push_back("run.dir=" + (temp / "with").string());
  testing::internal::CaptureStdout();
  train({.config = load_config(contract_config(), with)}, evaluate);
  testing::internal::GetCapturedStdout();
  EXPECT_EQ(evaluations, 4);
  EXPECT_EQ(digest_at(temp / "without", 6), digest_at(temp / "with", 6));
}

// Weights taken from a checkpoint start a new run: nothing else of the old one comes along.
TEST(Rules, InitialWeightsFromACheckpointBringNoState) {
  TempDir temp;
  train_contract(temp / "old", {"recipe.dtype=fp32"}, 3);
  train_contract(temp / "new", {"recipe.dtype=fp32", "recipe.init=" + (temp / "old" / "checkpoints" / "step-3").string()}, 1);
  const auto lines = metrics(temp / "new");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["step"], 1);
  EXPECT_EQ(lines[0]["tokens_total"], 1800);
  EXPECT_DOUBLE_EQ(lines[0]["lr"].get<double>(), 0.0005);
  EXPECT_EQ(lines[0]["batch_digest"], metrics(temp / "old")[0]["batch_digest"]);
  EXPECT_NE(lines[0]["loss_hex"], metrics(temp / "old")[0]["loss_hex"]);
}

TEST(Rules, WithoutTheGracefulStopSigtermEndsAtOnce) {
  TempDir temp;
  const fs::path run = temp / "run";
  const pid_t child = start({"train", contract_config().string(), "--dir", run.string(), "--set", "run.stop_on_signal=false"});
  while (!fs::exists(run / "metrics.jsonl") || fs::file_size(run / "metrics.jsonl") == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  ::kill(child, SIGTERM);
  EXPECT_EQ(wait_for(child), 1000 + SIGTERM);
}

}  // namespace
}  // namespace dz::train::test
