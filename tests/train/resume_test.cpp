// Stops, kills, forks and finished runs: the steps and the bits are those of the unbroken run.
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <thread>

#include "base/error.h"
#include "checkpoint/store.h"
#include "runs.h"

namespace dz::train::test {
namespace {

std::vector<std::string> column(const fs::path& run, const char* key) {
  std::vector<std::string> values;
  for (const nlohmann::json& line : metrics(run)) values.push_back(line.at(key).dump());
  return values;
}

void expect_same_steps(const fs::path& a, const fs::path& b) {
  for (const char* key : {"step", "batch_digest", "loss_hex", "grad_norm_hex", "lr", "tokens_total", "skipped"})
    EXPECT_EQ(column(a, key), column(b, key)) << key;
}

// Restarts of the reference read the last trained batch again and stayed one behind: here step k + 1 follows step k for every k.
TEST(Resume, EveryStepAfterAStopIsTheNextOne) {
  TempDir temp;
  const std::vector<std::string> sets = {"recipe.steps=12", "recipe.schedule.warmup=3"};
  train_contract(temp / "whole", sets);
  for (int64_t stop = 1; stop <= 12; ++stop) train_contract(temp / "broken", sets, stop);
  expect_same_steps(temp / "whole", temp / "broken");
  EXPECT_EQ(digest_at(temp / "whole", 12), digest_at(temp / "broken", 12));
}

TEST(Resume, StopAfterLeavesTheScheduleAlone) {
  TempDir temp;
  train_contract(temp / "a", {}, 3);
  const auto lines = metrics(temp / "a");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_DOUBLE_EQ(lines[2]["lr"].get<double>(), 0.0015);
}

TEST(Resume, AFinishedRunHasNothingToDo) {
  TempDir temp;
  const std::vector<std::string> sets = {"recipe.steps=2", "recipe.schedule.warmup=1"};
  train_contract(temp / "a", sets);
  const auto time = fs::last_write_time(temp / "a" / "metrics.jsonl");
  EXPECT_EQ(train_contract(temp / "a", sets), Outcome::kDone);
  EXPECT_EQ(fs::last_write_time(temp / "a" / "metrics.jsonl"), time);
}

TEST(Resume, AChangedRecipeIsRefusedWithItsKeys) {
  TempDir temp;
  train_contract(temp / "a", {}, 1);
  try {
    train_contract(temp / "a", {"recipe.optimizer.lr=0.004", "recipe.data.generated.documents=650"}, 2);
    FAIL() << "resumed under another recipe";
  } catch (const ConfigError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("recipe.optimizer.lr"), std::string::npos) << text;
    EXPECT_NE(text.find("run: 0.003"), std::string::npos) << text;
    EXPECT_NE(text.find("recipe.data.digest"), std::string::npos) << text;
    EXPECT_NE(text.find("--fork"), std::string::npos) << text;
  }
}

// D5: the schedule after a resume, and a new peak through a fork.
TEST(Resume, WarmUpEdgeAndNewPeakThroughAFork) {
  TempDir temp;
  const std::vector<std::string> sets = {"recipe.steps=100",
                                         "recipe.schedule.warmup=10",
                                         "recipe.optimizer.lr=1.0",
                                         "recipe.dtype=fp32",
                                         "recipe.data.sequence_length=8",
                                         "recipe.optimizer.skip_step.enabled=false",
                                         "recipe.optimizer.skip_step.max_consecutive=0"};
  train_contract(temp / "a", sets, 40);
  train_contract(temp / "a", sets, 45);
  const auto lines = metrics(temp / "a");
  ASSERT_EQ(lines.size(), 45u);
  for (size_t i = 0; i < 10; ++i) EXPECT_NEAR(lines[i]["lr"].get<double>(), 0.1 * static_cast<double>(i + 1), 1e-12);
  EXPECT_NEAR(lines[10]["lr"].get<double>(), 0.999726, 5e-7);
  const double expected[] = {0.761262, 0.747267, 0.733031, 0.718573, 0.703909};
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(lines[40 + i]["lr"].get<double>(), expected[i], 5e-7);

  std::vector<std::string> half = sets;
  half.push_back("recipe.optimizer.lr=0.5");
  half.push_back("run.dir=" + (temp / "b").string());
  testing::internal::CaptureStdout();
  train({.config = load_config(contract_config(), half), .stop_after = 45, .fork = temp / "a" / "checkpoints" / "step-40"}, {});
  const std::string said = testing::internal::GetCapturedStdout();
  EXPECT_NE(said.find("recipe.optimizer.lr"), std::string::npos) << said;
  const auto forked = metrics(temp / "b");
  ASSERT_EQ(forked.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(forked[i]["step"], 41 + static_cast<int64_t>(i));
    EXPECT_NEAR(forked[i]["lr"].get<double>(), expected[i] / 2, 5e-7);
  }
}

TEST(Resume, TwoTrainersInOneDirectoryAreRefused) {
  TempDir temp;
  std::vector<std::string> notes;
  const RunDirectory held(temp / "a", false, notes);
  EXPECT_THROW(RunDirectory(temp / "a", false, notes), TryAgainError);
}

TEST(Resume, FreshMovesTheOldRunAside) {
  TempDir temp;
  train_contract(temp / "a", {}, 1);
  std::vector<std::string> notes;
  { const RunDirectory fresh(temp / "a", true, notes); }
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_TRUE(fs::exists(temp / "a.old-1" / "checkpoints" / "step-1"));
  EXPECT_FALSE(fs::exists(temp / "a" / "checkpoints"));
}

// Saved again right after loading, a state is the same file by file.
TEST(Resume, AForkWithoutChangesHoldsTheSameState) {
  TempDir temp;
  train_contract(temp / "a", {}, 2);
  testing::internal::CaptureStdout();
  train({.config = load_config(contract_config(), {"run.dir=" + (temp / "b").string()}),
         .stop_after = 2,
         .fork = temp / "a" / "checkpoints" / "step-2"},
        {});
  testing::internal::GetCapturedStdout();
  for (const char* file : {"model.safetensors", "moments.safetensors", "trainer.json", "config.json", "identity.json"}) {
    EXPECT_EQ(read_file(temp / "a" / "checkpoints" / "step-2" / file), read_file(temp / "b" / "checkpoints" / "step-2" / file)) << file;
  }
}

TEST(Kills, ThirtyAtRandomMomentsEndWithTheRecordedDigest) {
  TempDir temp;
  const fs::path run = temp / "run";
  const std::vector<std::string> command = {"train", contract_config().string(), "--dir", run.string(), "--set", "run.checkpoint_every=2"};
  std::mt19937 random(20261129);
  int kills = 0;
  for (int attempt = 0; attempt < 300 && kills < 30; ++attempt) {
    const pid_t child = start(command);
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 400));
    ::kill(child, SIGKILL);
    const int code = wait_for(child);
    if (code == 1000 + SIGKILL) ++kills;
    if (code == 0) fs::remove_all(run);  // it was done before the kill: again from the start
  }
  EXPECT_EQ(kills, 30);
  EXPECT_EQ(wait_for(start(command)), 0);
  EXPECT_EQ(digest_at(run, 40), recorded("bf16", 40));
  EXPECT_EQ(metrics(run).size(), 40u);
}

TEST(Kills, AtEveryOperationOfASaveACompleteCheckpointStays) {
  TempDir temp;
  const fs::path run = temp / "run";
  const std::vector<std::string> command = {"train", contract_config().string(), "--dir", run.string(), "--stop-after", "4",
                                            "--set", "run.checkpoint_every=2",   "--set", "run.keep=1"};
  for (int operation = 1; operation < 200; operation += DZ_SANITIZED ? 7 : 1) {
    fs::remove_all(run);
    ASSERT_EQ(wait_for(start({"train", contract_config().string(), "--dir", run.string(), "--stop-after", "2", "--set", "run.keep=1"})), 0);
    ::setenv("DZ_TEST_CRASH", ("save:" + std::to_string(operation)).c_str(), 1);
    const int code = wait_for(start(command));
    ::unsetenv("DZ_TEST_CRASH");
    const checkpoint::Newest newest = checkpoint::find_newest(run / "checkpoints");
    ASSERT_TRUE(newest.checkpoint.has_value()) << "operation " << operation;
    EXPECT_TRUE(newest.checkpoint->step == 2 || newest.checkpoint->step == 4);
    if (code == 0) {
      EXPECT_GT(operation, 10) << "the crash switch did nothing";
      return;  // the save has no more operations
    }
    EXPECT_EQ(code, 1000 + SIGKILL);
  }
  FAIL() << "a save has more than 200 operations";
}

TEST(Signals, SigtermSavesAndStopsWith75AndTheRunGoesOn) {
  TempDir temp;
  const fs::path run = temp / "run";
  const std::vector<std::string> command = {"train", contract_config().string(), "--dir", run.string(), "--set", "run.checkpoint_every=0"};
  const pid_t child = start(command);
  while (!fs::exists(run / "metrics.jsonl") || fs::file_size(run / "metrics.jsonl") == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  ::kill(child, SIGUSR1);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ::kill(child, SIGTERM);
  EXPECT_EQ(wait_for(child), 75);
  EXPECT_TRUE(checkpoint::find_newest(run / "checkpoints").checkpoint.has_value());
  EXPECT_EQ(wait_for(start(command)), 0);
  EXPECT_EQ(digest_at(run, 40), recorded("bf16", 40));
}

}  // namespace
}  // namespace dz::train::test
