#include "data/pad_targets.h"

#include <gtest/gtest.h>

namespace dz::data {
namespace {

Batch two_rows() {
  return {.instances = 2,
          .sequence_length = 4,
          .tokens = {5, 9, 6, 9, 9, 7, 9, 8},
          .targets = {9, 6, 9, kNoTarget, 7, kNoTarget, 8, kNoTarget},
          .row_labels = {3, 2},
          .filtered = {0, 0},
          .labels = 5};
}

TEST(PadTargets, LoseTheirWeightAndAreCountedNoMore) {
  Batch batch = two_rows();
  mask_pad_targets(batch, 9);
  EXPECT_EQ(batch.targets, (std::vector<int32_t>{kNoTarget, 6, kNoTarget, kNoTarget, 7, kNoTarget, 8, kNoTarget}));
  EXPECT_EQ(batch.row_labels, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(batch.labels, 3);
  EXPECT_EQ(batch.tokens, two_rows().tokens);  // what the model reads is the same
}

TEST(PadTargets, NothingChangesWithoutPads) {
  Batch batch = two_rows();
  mask_pad_targets(batch, 3);
  EXPECT_EQ(batch.targets, two_rows().targets);
  EXPECT_EQ(batch.labels, 5);
}

}  // namespace
}  // namespace dz::data
