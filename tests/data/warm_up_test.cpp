#include "data/warm_up.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/check.h"
#include "base/error.h"
#include "data/golden_datasets.h"

namespace dz::data {
namespace {

using test::GoldenDataset;
using Ids = std::vector<int32_t>;

// A data set with label masks, filtered instances and documents of many lengths; rows of 16.
std::shared_ptr<const Dataset> data_of(int64_t length) {
  const GoldenDataset golden = test::golden_dataset("fsl_masks_lens_filter");
  return filtered_dataset(fixed_dataset(golden.store, length, 16), *golden.filter);
}

Batch batch_of(int64_t length = 16) {
  const auto dataset = data_of(length);
  return make_batch(*dataset, test::all_instances(*dataset), true);
}

TEST(WarmUp, SplitRowsAreTheTokenStreamCutShorter) {
  for (const int64_t length : {8, 4, 2}) {
    Batch split = batch_of();
    const Batch whole = split, direct = batch_of(length);
    shorten(split, length, WarmUpMode::kSplit);
    EXPECT_EQ(split.tokens, whole.tokens);
    EXPECT_EQ(split.tokens, direct.tokens);
    EXPECT_EQ(split.first_visible, direct.first_visible) << length;
    EXPECT_EQ(split.instances, whole.instances * 16 / length);
    EXPECT_EQ(split.sequence_length, length);
    // But for filtered instances, which are judged whole, it is the batch of a data set of that length.
    for (size_t row = 0; row < split.ids.size(); ++row) {
      EXPECT_EQ(split.ids[row], whole.ids[row * static_cast<size_t>(length) / 16]);
      const auto begin = static_cast<int64_t>(row) * length;
      if (split.filtered[row] || direct.filtered[row]) continue;
      EXPECT_TRUE(std::equal(split.targets.begin() + begin, split.targets.begin() + begin + length, direct.targets.begin() + begin));
      EXPECT_EQ(split.row_labels[row], direct.row_labels[row]);
    }
  }
}

TEST(WarmUp, TruncatedRowsAreTheFirstTokens) {
  for (const int64_t length : {15, 8, 2}) {
    Batch cut = batch_of();
    const Batch whole = cut;
    shorten(cut, length, WarmUpMode::kTruncate);
    EXPECT_EQ(cut.ids, whole.ids);
    EXPECT_EQ(cut.filtered, whole.filtered);
    for (int64_t row = 0; row < whole.instances; ++row) {
      for (int64_t column = 0; column < length; ++column) {
        const auto at = static_cast<size_t>(row * length + column), from = static_cast<size_t>(row * 16 + column);
        EXPECT_EQ(cut.tokens[at], whole.tokens[from]);
        EXPECT_EQ(cut.first_visible[at], whole.first_visible[from]);
        EXPECT_EQ(cut.targets[at], column + 1 == length ? kNoTarget : whole.targets[from]);
      }
    }
  }
}

TEST(WarmUp, LabelsAreCountedAnewAndTheDigestIsOfTheRows) {
  for (const WarmUpMode mode : {WarmUpMode::kTruncate, WarmUpMode::kSplit}) {
    Batch batch = batch_of();
    const Digest128 before = batch.digest;
    shorten(batch, 4, mode);
    int64_t sum = 0;
    for (size_t row = 0; row < batch.row_labels.size(); ++row) {
      int64_t labels = 0;
      for (size_t i = row * 4; i < row * 4 + 4; ++i) labels += batch.targets[i] != kNoTarget;
      EXPECT_EQ(batch.row_labels[row], labels);
      if (batch.filtered[row]) {
        EXPECT_EQ(labels, 0);
      }
      sum += labels;
    }
    EXPECT_EQ(batch.labels, sum);
    EXPECT_GT(std::count(batch.filtered.begin(), batch.filtered.end(), 1), 0);
    EXPECT_NE(batch.digest, before);
    EXPECT_EQ(batch.digest, digest_of(batch));
  }
}

TEST(WarmUp, ABatchThatIsShortEnoughIsLeftAlone) {
  for (const int64_t length : {16, 17, 1024}) {
    Batch batch = batch_of();
    const Digest128 before = batch.digest;
    shorten(batch, length, WarmUpMode::kSplit);
    EXPECT_EQ(batch.digest, before);
    EXPECT_EQ(batch.sequence_length, 16);
  }
  Batch batch = batch_of();
  EXPECT_THROW(shorten(batch, 5, WarmUpMode::kSplit), BugError);
  EXPECT_THROW(shorten(batch, 1, WarmUpMode::kTruncate), BugError);
  batch.first_visible.clear();
  shorten(batch, 8, WarmUpMode::kSplit);
  EXPECT_TRUE(batch.first_visible.empty());
  EXPECT_EQ(parse_warm_up_mode("split", ""), WarmUpMode::kSplit);
  EXPECT_THROW(parse_warm_up_mode("melt", "recipe.data.warm_up.mode"), ConfigError);
}

}  // namespace
}  // namespace dz::data
