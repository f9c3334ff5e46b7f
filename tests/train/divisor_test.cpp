#include "train/divisor.h"

#include <gtest/gtest.h>

#include "train/runs.h"

namespace dz::train {
namespace {

data::Batch batch_of(int64_t length, std::vector<int64_t> labels, std::vector<uint8_t> filtered) {
  data::Batch batch{.instances = static_cast<int64_t>(labels.size()), .sequence_length = length};
  for (const int64_t count : labels) batch.labels += count;
  batch.row_labels = std::move(labels);
  batch.filtered = std::move(filtered);
  return batch;
}

// Row 51: rank 0 with 6 tokens that sum to 12 and rank 1 with 2 that sum to 10: 22 / 8, not the mean of 2 and 5.
TEST(Divisor, GlobalCountsTokensNotRanks) {
  const data::Batch batch = batch_of(7, {6, 2}, {0, 0});
  const std::vector<double> sums = {12, 10};
  EXPECT_DOUBLE_EQ(mean_loss(batch, sums, Divisor::kGlobal, 2), 2.75);
  EXPECT_DOUBLE_EQ(mean_loss(batch, sums, Divisor::kOlmoCore, 2), 3.5);
  EXPECT_DOUBLE_EQ(mean_loss(batch, sums, Divisor::kOlmoCore, 1), 2.75);
  EXPECT_EQ(loss_weights(batch, Divisor::kGlobal, 2), (std::vector<float>{1.0f / 8, 1.0f / 8}));
  EXPECT_EQ(loss_weights(batch, Divisor::kOlmoCore, 2), (std::vector<float>{1.0f / 12, 1.0f / 4}));
}

// D3, row 49: ten tokens that cost 2 and two that cost 4 cost 28/12, not the mean of 2 and 4, in whatever parts they come.
TEST(Divisor, MicroBatchesAreNoUnitOfTheMean) {
  const std::vector<double> sums = {20, 8};
  EXPECT_NEAR(mean_loss(batch_of(11, {10, 2}, {0, 0}), sums, Divisor::kGlobal, 1), 2.3333, 5e-5);
  EXPECT_NEAR(mean_loss(batch_of(11, {6, 4, 1, 1}, {0, 0, 0, 0}), std::vector<double>{12, 8, 4, 4}, Divisor::kGlobal, 1), 2.3333, 5e-5);
  EXPECT_DOUBLE_EQ(mean_loss(batch_of(11, {10, 2}, {0, 0}), sums, Divisor::kOlmoCore, 2), 3.0) << "OLMo-core's per-rank divisor is that mean";
  EXPECT_EQ(loss_weights(batch_of(11, {10, 2}, {0, 0}), Divisor::kGlobal, 1), (std::vector<float>{1.0f / 12, 1.0f / 12}));
}

// Row 53: of four instances two are filtered. OLMo-core adds the length of each to its divisor, so its loss is lower.
TEST(Divisor, FilteredInstancesCountTheirLengthInOlmoCore) {
  const data::Batch batch = batch_of(8, {7, 0, 7, 0}, {0, 1, 0, 1});
  const std::vector<double> sums = {14, 0, 14, 0};
  EXPECT_DOUBLE_EQ(mean_loss(batch, sums, Divisor::kGlobal, 1), 2.0);
  EXPECT_DOUBLE_EQ(mean_loss(batch, sums, Divisor::kOlmoCore, 1), 28.0 / 30.0);
  // Rows 0 and 2 are rank 0, rows 1 and 3 rank 1: its mean is 0 / 16.
  EXPECT_DOUBLE_EQ(mean_loss(batch, sums, Divisor::kOlmoCore, 2), (28.0 / 14.0 + 0.0) / 2);
  EXPECT_EQ(loss_weights(batch, Divisor::kOlmoCore, 2)[0], static_cast<float>(1.0 / 28));
}

// Row 194: nothing to learn is no division by zero.
TEST(Divisor, ABatchWithoutATargetHasNoLoss) {
  const data::Batch batch = batch_of(8, {0, 0}, {0, 0});
  for (const Divisor divisor : {Divisor::kGlobal, Divisor::kOlmoCore}) {
    EXPECT_EQ(mean_loss(batch, std::vector<double>{0, 0}, divisor, 2), 0.0);
    EXPECT_EQ(loss_weights(batch, divisor, 2), (std::vector<float>{0, 0}));
  }
}

// The divisor of one virtual rank is the global one when nothing is filtered: the same bits. With more ranks of equal parts the loss is the
// same number, and with unequal ones it is not, whatever the micro-batch.
TEST(Divisor, IsPartOfTheRecipeAndNotOfTheMicroBatch) {
  const test::TempDir root;
  const auto digest = [&](const std::string& name, std::vector<std::string> sets) {
    sets.push_back("recipe.steps=3");
    sets.push_back("recipe.schedule.warmup=1");
    sets.push_back("run.digest_every=3");
    test::train_contract(root / name, sets);
    return test::digest_at(root / name, 3).parameters;
  };
  const std::string global = digest("global", {});
  EXPECT_EQ(digest("one", {"recipe.loss.divisor=olmo-core"}), global);
  const std::string five = digest("five", {"recipe.loss.divisor=olmo-core", "recipe.loss.divisor_ranks=5"});
  EXPECT_NE(five, global);  // 12 rows over 5 ranks: three of them have two rows, two have three
  for (const char* micro : {"1", "5", "12"})
    EXPECT_EQ(digest(std::string("micro") + micro,
                     {"recipe.loss.divisor=olmo-core", "recipe.loss.divisor_ranks=5", std::string("topology.micro_batch=") + micro}),
              five)
        << micro;
  EXPECT_TRUE(test::metrics(root / "five").back().contains("loss_olmo_core"));
}

}  // namespace
}  // namespace dz::train
