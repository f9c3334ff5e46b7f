#include "train/audit.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/thread_pool.h"
#include "data/ledger.h"
#include "data/wrong_orders.h"
#include "train/runs.h"

namespace dz::train {
namespace {

using Records = std::vector<std::pair<int64_t, std::vector<int64_t>>>;

Audit audit_of(const TrainingData& data, const Records& records) {
  return audit_records(data, [&](const auto& use) {
    for (const auto& [step, ids] : records) use(step, ids);
  });
}

TrainingData some_data(int64_t batch) {
  ThreadPool pool(1);
  Config config = load_config(test::contract_config(), {"recipe.batch=" + std::to_string(batch)});
  return open_data(config.recipe, {}, pool);
}

Records planned(const TrainingData& data, int64_t steps) {
  Records records;
  for (int64_t step = 1; step <= steps; ++step) records.emplace_back(step, data.order->batch(step));
  return records;
}

TEST(Audit, APlanThatWasFollowed) {
  const TrainingData data = some_data(12);  // 600 instances: 50 steps an epoch
  for (const int64_t steps : {1, 49, 50, 51, 100}) {
    const Audit audit = audit_of(data, planned(data, steps));
    EXPECT_FALSE(audit.difference) << steps;
    EXPECT_TRUE(audit.at_most_once_an_epoch);
    EXPECT_EQ(audit.consumed, 12 * steps);
    EXPECT_EQ(audit.never, std::max<int64_t>(0, 600 - 12 * steps));
    EXPECT_EQ(audit.twice, std::max<int64_t>(0, 12 * steps - 600));
    EXPECT_EQ(audit.more, 0);
    EXPECT_DOUBLE_EQ(audit.shares.at(0).share, 1.0);
  }
}

// Each fault is named at its first step.
TEST(Audit, NamesTheFirstStepThatDiffers) {
  const TrainingData data = some_data(12);
  const Records good = planned(data, 20);
  struct Fault {
    const char* what;
    int64_t step;
    std::function<void(Records&)> make;
  };
  const Fault faults[] = {
      {"other instances", 7, [](Records& r) { std::swap(r[6].second[0], r[6].second[1]); }},
      {"other instances", 1, [](Records& r) { r[0].second.pop_back(); }},
      {"no record", 9, [](Records& r) { r.erase(r.begin() + 8); }},
      {"recorded twice", 9, [](Records& r) { r.insert(r.begin() + 9, r[8]); }},
      // The loader of a resume that starts one batch early, as after a checkpoint whose number is not the number of steps done.
      {"other instances", 11,
       [](Records& r) {
         for (size_t i = 19; i >= 10; --i) r[i].second = r[i - 1].second;
       }},
  };
  for (const Fault& fault : faults) {
    Records records = good;
    fault.make(records);
    const Audit audit = audit_of(data, records);
    ASSERT_TRUE(audit.difference) << fault.what;
    EXPECT_EQ(audit.difference->step, fault.step) << fault.what;
    EXPECT_NE(audit.difference->what.find(fault.what), std::string::npos) << audit.difference->what;
    EXPECT_NE(to_text(audit).find("DIFFERENT at step " + std::to_string(fault.step)), std::string::npos);
  }
  EXPECT_FALSE(audit_of(data, good).difference);
}

// The two faults of MaxText's olmo_grain, injected (MaxText: input_pipeline/olmo_grain_data_processing.py): hosts that are cut twice see a third
// of the data never and a quarter twice or more, and a resume by the number of the last folder reads one batch again.
TEST(Audit, NamesDoubleShardingAndTheOffByOneOfAResume) {
  ThreadPool pool(1);
  struct Case {
    int64_t hosts;
    double never, once, more;
  };
  for (const Case& expected : {Case{32, 37, 37, 26}, Case{4, 32, 42, 26}}) {
    const int64_t instances = 64000;
    Config config = load_config(test::contract_config(),
                                {"recipe.data.generated.tokens=" + std::to_string(2 * instances), "recipe.data.sequence_length=2", "recipe.batch=64",
                                 "recipe.data.order.dialect=maxtext", "recipe.data.order.hosts=" + std::to_string(expected.hosts)});
    const TrainingData data = open_data(config.recipe, {}, pool);
    const dz::test::DoubleShardedOrder wrong(data.order);
    Records records;
    for (int64_t step = 1; step <= instances / 64; ++step) records.emplace_back(step, wrong.batch(step));
    const Audit audit = audit_of(data, records);
    const auto share = [&](int64_t count) { return 100.0 * static_cast<double>(count) / static_cast<double>(instances); };
    EXPECT_NEAR(share(audit.never), expected.never, 1) << expected.hosts;
    EXPECT_NEAR(share(audit.once), expected.once, 1) << expected.hosts;
    EXPECT_NEAR(share(audit.twice + audit.more), expected.more, 1) << expected.hosts;
    ASSERT_TRUE(audit.difference);
    EXPECT_LE(audit.difference->step, 100);

    const dz::test::OffByOneOrder late(data.order, 57);
    Records resumed;
    for (int64_t step = 1; step <= 100; ++step) resumed.emplace_back(step, late.batch(step));
    const Audit second = audit_of(data, resumed);
    ASSERT_TRUE(second.difference);
    EXPECT_EQ(second.difference->step, 58);

    const Audit right = audit_of(data, planned(data, instances / 64));
    EXPECT_FALSE(right.difference);
    EXPECT_EQ(right.once, instances);
  }
}

// Rows 5, 6, 9: whatever stops and resumes a run has, its ledger is that of the unbroken one, byte by byte.
TEST(Audit, StopsAndResumesLeaveTheLedgerOfAnUnbrokenRun) {
  const test::TempDir root;
  ThreadPool pool(1);
  const std::vector<std::string> sets = {"recipe.steps=8"};
  test::train_contract(root / "whole", sets);
  for (const char* loader : {"0", "1", "4"}) {
    const fs::path run = root / (std::string("broken") + loader);
    for (const int64_t stop : {1, 3, 4, 8}) {
      std::vector<std::string> all = sets;
      all.push_back(std::string("topology.loader_threads=") + loader);
      all.push_back("topology.prefetch=" + std::to_string(stop));
      test::train_contract(run, all, stop);
    }
    EXPECT_EQ(read_file(run / "ledger" / "consumed.bin"), read_file(root / "whole" / "ledger" / "consumed.bin")) << loader;
    const Audit audit = audit_run(run, {.sets = {}, .tokens = true}, pool);
    EXPECT_FALSE(audit.difference) << to_text(audit);
    EXPECT_EQ(audit.tokens_checked, 8);
    EXPECT_EQ(audit.once, 96);
  }
}

TEST(Audit, OtherTokensUnderTheSameNumbersAreFound) {
  const test::TempDir root;
  ThreadPool pool(1);
  test::train_contract(root / "run", {"recipe.steps=3", "recipe.schedule.warmup=1"});
  const std::string metrics = read_file(root / "run" / "metrics.jsonl");
  const size_t at = metrics.rfind("\"batch_digest\":\"") + 16;
  std::string changed = metrics;
  changed[at] = changed[at] == '0' ? '1' : '0';
  write_file_atomic(root / "run" / "metrics.jsonl", changed);
  EXPECT_FALSE(audit_run(root / "run", {}, pool).difference);
  const Audit audit = audit_run(root / "run", {.sets = {}, .tokens = true}, pool);
  ASSERT_TRUE(audit.difference);
  EXPECT_EQ(audit.difference->step, 3);
}

// Evidence that was lost is not proof: a ledger that does not reach the checkpoint, one that begins late, and steps without a digest.
TEST(Audit, LostEvidenceIsNoProof) {
  const test::TempDir root;
  ThreadPool pool(1);
  const fs::path run = root / "run", path = run / "ledger" / "consumed.bin";
  const std::vector<std::string> sets = {"recipe.steps=6", "recipe.schedule.warmup=1", "run.checkpoint_every=2", "run.keep=0"};
  test::train_contract(run, sets, 4);
  const std::string whole = read_file(path);
  const size_t record = (whole.size() - 28) / 4;
  const auto first = [&](bool tokens) {
    const Audit audit = audit_run(run, {.sets = {}, .tokens = tokens}, pool);
    return audit.difference ? audit.difference->step : 0;
  };
  EXPECT_EQ(first(true), 0);
  for (size_t kept = 0; kept < 4; ++kept) {
    write_file_atomic(path, whole.substr(0, 28 + kept * record));
    EXPECT_EQ(first(false), static_cast<int64_t>(kept) + 1);
    write_file_atomic(path, whole.substr(0, 28 + kept * record + 5));
    EXPECT_EQ(first(false), static_cast<int64_t>(kept) + 1);
  }
  write_file_atomic(path, "");
  EXPECT_EQ(first(false), 1);
  // The run goes on without what was lost, and the audit does not forget it.
  test::train_contract(run, sets, 6);
  EXPECT_EQ(first(false), 1);

  write_file_atomic(path, whole);
  fs::remove_all(run / "checkpoints" / "step-6");
  test::train_contract(run, sets, 6);
  EXPECT_EQ(first(true), 0);
  const std::string metrics = read_file(run / "metrics.jsonl");
  const size_t second = metrics.find('\n') + 1;
  write_file_atomic(run / "metrics.jsonl", metrics.substr(0, second) + metrics.substr(metrics.find('\n', second) + 1));
  EXPECT_EQ(first(false), 0);
  EXPECT_EQ(first(true), 2);
  write_file_atomic(run / "metrics.jsonl", "");
  EXPECT_EQ(first(true), 1);
}

// A fork begins where its parent stopped, and that is no loss.
TEST(Audit, AForkIsAuditedFromItsOwnFirstStep) {
  const test::TempDir root;
  ThreadPool pool(1);
  test::train_contract(root / "a", {"recipe.steps=6", "recipe.schedule.warmup=1"}, 2);
  {
    testing::internal::CaptureStdout();
    train({.config = load_config(test::contract_config(), {"recipe.steps=6", "recipe.schedule.warmup=1", "run.dir=" + (root / "b").string()}),
           .stop_after = 5,
           .fork = root / "a" / "checkpoints" / "step-2"},
          {});
    testing::internal::GetCapturedStdout();
  }
  const Audit audit = audit_run(root / "b", {.sets = {}, .tokens = true}, pool);
  EXPECT_FALSE(audit.difference) << to_text(audit);
  EXPECT_EQ(audit.first_step, 3);
  EXPECT_EQ(audit.tokens_checked, 3);
}

TEST(Audit, SaysWhatIsMissing) {
  const test::TempDir root;
  ThreadPool pool(1);
  EXPECT_THROW(audit_run(root / "none", {}, pool), InputError);
  test::train_contract(root / "run", {"recipe.steps=2", "recipe.schedule.warmup=1"});
  EXPECT_THROW(audit_run(root / "run", {.sets = {"recipe.data.generated.tokens=80000"}, .tokens = false}, pool), DataError);
  fs::remove(root / "run" / "ledger" / "consumed.bin");
  EXPECT_THROW(audit_run(root / "run", {}, pool), InputError);
}

}  // namespace
}  // namespace dz::train
