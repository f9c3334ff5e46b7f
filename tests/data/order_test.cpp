#include "data/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/error.h"
#include "data/goldens.h"
#include "data/keyed_permutation.h"
#include "data/orders.h"
#include "data/temporary.h"

namespace dz::data {
namespace {

using test::keyed_order;
using Ids = std::vector<int64_t>;

Ids permutation_of(int64_t size, uint64_t seed, int64_t epoch) {
  const KeyedPermutation permutation(size, seed, epoch);
  Ids ids;
  for (int64_t i = 0; i < size; ++i) ids.push_back(permutation(i));
  return ids;
}

TEST(KeyedPermutation, TakesEachInstanceOnce) {
  for (const int64_t size : {1, 2, 3, 4, 5, 11, 16, 17, 44, 63, 64, 65, 1000, 4097}) {
    Ids ids = permutation_of(size, 7, 0);
    std::sort(ids.begin(), ids.end());
    Ids all(static_cast<size_t>(size));
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(ids, all) << size;
  }
}

// Rows 34 and 35: seeds and epochs matter, and the order is no identity.
TEST(KeyedPermutation, SeedAndEpochGiveOtherOrders) {
  std::set<Ids> orders;
  Ids identity(11);
  std::iota(identity.begin(), identity.end(), 0);
  orders.insert(identity);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    for (int64_t epoch = 0; epoch < 20; ++epoch) orders.insert(permutation_of(11, seed, epoch));
  }
  EXPECT_EQ(orders.size(), 401u);  // 11! is 4e7: even one repetition in 400 would be odd
}

// Each value must be equally likely at each position, and neighbours must not stay together more often than chance has it.
TEST(KeyedPermutation, LooksLikeAFairShuffle) {
  constexpr int64_t kSize = 11, kSeeds = 3000;
  std::vector<int64_t> counts(kSize * kSize);
  int64_t together = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Ids ids = permutation_of(kSize, seed, 3);
    for (int64_t i = 0; i < kSize; ++i) ++counts[static_cast<size_t>(i * kSize + ids[static_cast<size_t>(i)])];
    for (size_t i = 1; i < ids.size(); ++i) together += ids[i] == ids[i - 1] + 1;
  }
  const double expected = double{kSeeds} / kSize, sigma = std::sqrt(expected * (1 - 1.0 / kSize));
  for (const int64_t count : counts) EXPECT_NEAR(static_cast<double>(count), expected, 5 * sigma);
  const double pairs = kSeeds * (kSize - 1.0) / kSize;  // (n - 1) places, each with chance 1 / n
  EXPECT_NEAR(static_cast<double>(together), pairs, 5 * std::sqrt(pairs));
}

TEST(KeyedPermutation, SeeksInHugeDataWithoutATable) {
  const int64_t size = (int64_t{1} << 40) + 12345;
  const KeyedPermutation permutation(size, 1, 0);
  std::set<int64_t> seen;
  for (int64_t i = 0; i < 1000; ++i) {
    const int64_t id = permutation(size - 1 - i * 1000003);
    EXPECT_TRUE(id >= 0 && id < size);
    EXPECT_TRUE(seen.insert(id).second);
  }
  EXPECT_GT(*seen.rbegin(), int64_t{1} << 39);
}

// D2, rows 19, 27, 30: 11 instances in batches of 3 over three epochs; every instance once before any comes again.
TEST(KeyedOrder, EpochsAreWholePermutationsAcrossBatches) {
  const auto order = keyed_order(11, 3, 5);
  Ids stream;
  for (int64_t step = 1; step <= 11; ++step) {
    const Ids batch = order->batch(step);
    EXPECT_EQ(batch.size(), 3u);
    stream.insert(stream.end(), batch.begin(), batch.end());
  }
  for (int64_t epoch = 0; epoch < 3; ++epoch)
    EXPECT_EQ(Ids(stream.begin() + epoch * 11, stream.begin() + (epoch + 1) * 11), permutation_of(11, 5, epoch));
  EXPECT_EQ(order->epoch(1), 0);
  EXPECT_EQ(order->epoch(4), 0);  // begins with the last two of epoch 0
  EXPECT_EQ(order->epoch(5), 1);
  EXPECT_EQ(order->batch(4), order->batch(4));
}

// Row 2: the epoch follows from the step, so a fresh object in epoch 1 needs to be told nothing.
TEST(KeyedOrder, AResumeNeedsTheStepOnly) {
  const auto unbroken = keyed_order(44, 4, 9);
  Ids all;
  for (int64_t step = 1; step <= 22; ++step) {
    const Ids batch = unbroken->batch(step);
    all.insert(all.end(), batch.begin(), batch.end());
  }
  for (int64_t step = 15; step <= 22; ++step) {
    const Ids batch = keyed_order(44, 4, 9)->batch(step);
    EXPECT_TRUE(std::equal(batch.begin(), batch.end(), all.begin() + (step - 1) * 4)) << step;
  }
  EXPECT_NE(Ids(all.begin(), all.begin() + 44), Ids(all.begin() + 44, all.end()));
}

TEST(KeyedOrder, ImpossibleBatchesSayTheNumbers) {
  const std::string message = test::message_of<ConfigError>([] { keyed_order(10, 12, 0); });
  EXPECT_NE(message.find("found 12 instances a step, expected at most the 10 instances of the data"), std::string::npos) << message;
  EXPECT_THROW(keyed_order(10, 0, 0), ConfigError);
  EXPECT_THROW(keyed_order(0, 1, 0), ConfigError);
  EXPECT_EQ(keyed_order(10, 10, 0)->batch(1).size(), 10u);
}

// The order decides the bits of every run. The golden is computed by tools/reference/keyed_order.py from the rule in docs/data.md.
TEST(KeyedOrder, EqualsTheWrittenRule) {
  const nlohmann::json golden = test::data_golden("keyed_order.json");
  ASSERT_EQ(golden["rows"].size(), 8u);
  for (const auto& row : golden["rows"]) {
    const Ids ids = keyed_order(row["instances"], row["batch"], row["seed"])->batch(row["step"]);
    EXPECT_EQ(ids, row["ids"].get<Ids>()) << row["instances"] << " step " << row["step"];
  }
}

// Derived: warm-up cuts the same stream of instances in other places, and every step stands alone.
TEST(KeyedOrder, WarmUpCutsTheSameStream) {
  const OrderSettings settings{.instances = 44, .batch = 3, .seed = 9, .stages = {{4, 7}, {6, 44}, {8, 1}}};
  const auto order = make_order(settings);
  Ids stream;
  for (int64_t step = 1; step <= 12; ++step) {
    const Ids batch = make_order(settings)->batch(step);
    EXPECT_EQ(static_cast<int64_t>(batch.size()), order->batch_size(step));
    stream.insert(stream.end(), batch.begin(), batch.end());
  }
  ASSERT_EQ(stream.size(), 3u * 3 + 2 * 7 + 2 * 44 + 5);
  const auto single = keyed_order(44, 1, 9);
  for (size_t i = 0; i < stream.size(); ++i) EXPECT_EQ(stream[i], single->batch(static_cast<int64_t>(i) + 1)[0]) << i;
  EXPECT_EQ(order->epoch(7), (9 + 14 + 44) / 44);
}

// Derived: with chunks the stream of tokens is the same for a shorter sequence length.
TEST(KeyedOrder, ChunksKeepTheTokenStream) {
  const auto whole = keyed_order(11, 1, 5);
  const auto cut = make_order({.instances = 44, .batch = 4, .seed = 5, .chunk = 4});
  for (int64_t step = 1; step <= 22; ++step) {
    const int64_t id = whole->batch(step)[0] * 4;
    EXPECT_EQ(cut->batch(step), (Ids{id, id + 1, id + 2, id + 3}));
  }
}

TEST(KeyedOrder, StartsAtAnyEpochAndAtAnyStep) {
  const auto from_third = make_order({.instances = 11, .batch = 11, .seed = 5, .first_epoch = 3});
  EXPECT_EQ(from_third->batch(1), keyed_order(11, 11, 5)->batch(4));
  EXPECT_EQ(from_third->epoch(2), 4);
  const auto huge = keyed_order(int64_t{1} << 40, 5, 1);
  EXPECT_EQ(huge->batch((int64_t{1} << 60) + 1).size(), 5u);
  EXPECT_THROW(huge->batch(int64_t{1} << 62), ConfigError);
}

TEST(KeyedOrder, IsPlainWithoutShuffle) {
  const auto order = make_order({.instances = 5, .batch = 3, .shuffle = false});
  EXPECT_EQ(order->batch(2), (Ids{3, 4, 0}));
}

}  // namespace
}  // namespace dz::data
