// Against ai2-olmo-core 2.4.0 (tests/golden/data/loader.json), and what its rules promise.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <set>
#include <thread>

#include "base/error.h"
#include "data/goldens.h"
#include "data/order.h"
#include "data/temporary.h"

namespace dz::data {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<int64_t>;

std::shared_ptr<const Order> olmo(int64_t instances, int64_t batch, uint64_t seed, std::vector<BatchStage> stages = {}) {
  return make_order({.dialect = Dialect::kOlmoCore, .instances = instances, .batch = batch, .seed = seed, .stages = std::move(stages)});
}

OrderSettings settings_of(const Json& row) {
  const int64_t length = row["sequence_length"],
                target = row["max_target_sequence_length"].is_null() ? length : row["max_target_sequence_length"].get<int64_t>();
  return {.dialect = Dialect::kOlmoCore,
          .instances = row["dataset_length"],
          .batch = row["global_batch_size"].get<int64_t>() / length,
          .seed = row["seed"].get<uint64_t>(),
          .shuffle = row["shuffle"],
          .chunk = target / length,
          .first_epoch = row["epoch"]};
}

Ids epoch_order(const Order& order, int64_t epoch) {
  Ids ids(static_cast<size_t>(order.instances()));
  order.epoch_order(epoch, 0, ids);
  return ids;
}

TEST(OlmoCoreOrder, GlobalIndicesAndRankSlices) {
  const Json golden = test::data_golden("loader.json");
  ASSERT_EQ(golden["orders"].size(), 12u);
  int64_t too_short = 0;
  for (const Json& row : golden["orders"]) {
    const OrderSettings settings = settings_of(row);
    const int64_t batches = row["total_batches"], ranks = row["dp_world_size"];
    if (batches == 0) {
      // The reference trains on nothing, without a word.
      EXPECT_THROW(make_order(settings), ConfigError);
      ++too_short;
      continue;
    }
    const auto order = make_order(settings);
    EXPECT_EQ(epoch_order(*order, settings.first_epoch), row["global_indices"].get<Ids>()) << row["cache_file"];
    for (int64_t step = 1; step <= batches; ++step) {
      EXPECT_EQ(order->epoch(step), settings.first_epoch);
      const Ids batch = order->batch(step);
      for (int64_t rank = 0; rank < ranks; ++rank)
        EXPECT_EQ(rank_slice(batch, rank, ranks), row["batches_per_rank"][static_cast<size_t>(rank)][static_cast<size_t>(step - 1)].get<Ids>());
    }
    EXPECT_EQ(order->epoch(batches + 1), settings.first_epoch + 1);
  }
  EXPECT_EQ(too_short, 1);
}

// Every state after every batch, over two epochs: step N + 1 is all there is to know.
TEST(OlmoCoreOrder, EpochsOfTheResumeGoldens) {
  const Json golden = test::data_golden("loader.json");
  ASSERT_EQ(golden["resumes"].size(), 2u);
  for (const Json& row : golden["resumes"]) {
    const int64_t length = row["sequence_length"], batch = row["global_batch_size"].get<int64_t>() / length;
    const Json& target = row["max_target_sequence_length"];
    const int64_t instances = target.is_null() ? 25 : 48, chunk = target.is_null() ? 1 : target.get<int64_t>() / length;
    int64_t step = 1;
    for (const Json& epoch : row["epochs"]) {
      for (const Json& ids : epoch["batches"]) {
        // A fresh object for each step, as after a restart.
        const auto order =
            make_order({.dialect = Dialect::kOlmoCore, .instances = instances, .batch = batch, .seed = row["seed"].get<uint64_t>(), .chunk = chunk});
        EXPECT_EQ(order->epoch(step), epoch["epoch"].get<int64_t>());
        EXPECT_EQ(order->batch(step++), ids.get<Ids>());
      }
    }
  }
}

// A live change of the batch size gives what the reference gives, or is refused where it refuses.
TEST(OlmoCoreOrder, BatchSizeChangesByTheReferencesRule) {
  const Json golden = test::data_golden("loader.json");
  int64_t refused = 0, changed = 0;
  for (const Json& row : golden["resumes"]) {
    const int64_t length = row["sequence_length"];
    const Json& target = row["max_target_sequence_length"];
    for (const Json& change : row["batch_size_changed"]) {
      const int64_t step = change["saved_after_batches"].get<int64_t>() + 1;
      const OrderSettings settings{.dialect = Dialect::kOlmoCore,
                                   .instances = target.is_null() ? 25 : 48,
                                   .batch = change["old_batch"].get<int64_t>() / length,
                                   .seed = row["seed"].get<uint64_t>(),
                                   .chunk = target.is_null() ? 1 : target.get<int64_t>() / length,
                                   .stages = {{step, change["new_batch"].get<int64_t>() / length}}};
      if (change["live"].is_string()) {
        EXPECT_THROW(make_order(settings), ConfigError) << change;
        ++refused;
        continue;
      }
      const auto order = make_order(settings);
      int64_t at = step;
      for (const Json& ids : change["live"]["rest"]) {
        EXPECT_EQ(order->epoch(at), 1);
        EXPECT_EQ(order->batch_size(at), static_cast<int64_t>(ids.size()));
        EXPECT_EQ(order->batch(at++), ids.get<Ids>()) << change;
      }
      EXPECT_EQ(order->epoch(at), 2) << change;
      ++changed;
    }
  }
  EXPECT_EQ(refused, 10);
  EXPECT_EQ(changed, 8);
}

// reference 3.2: 100,000 instances, seed 34521, epoch 1.
TEST(OlmoCoreOrder, ALargeEpochEqualsThePublishedHash) {
  const Ids ids = epoch_order(*olmo(100000, 1, 34521), 1);
  EXPECT_EQ(Ids(ids.begin(), ids.begin() + 4), (Ids{3905, 35708, 5676, 91286}));
  EXPECT_EQ(test::sha256_of_words<uint32_t>(ids), "f027c8178cf240808a4f8b027158a0c8dd49f1e826429c3404ad71d29b5b982c");
}

// Rows 23 and 27: whole batches only; the tail of the permutation goes, another one each epoch, and nothing comes twice within an epoch.
TEST(OlmoCoreOrder, DropsTheTailOfThePermutation) {
  const auto order = olmo(103, 8, 4);
  std::set<int64_t> dropped;
  for (int64_t epoch = 1; epoch <= 3; ++epoch) {
    Ids seen;
    for (int64_t b = 0; b < 12; ++b) {
      const Ids batch = order->batch((epoch - 1) * 12 + b + 1);
      seen.insert(seen.end(), batch.begin(), batch.end());
    }
    const Ids whole = epoch_order(*order, epoch);
    EXPECT_EQ(seen, Ids(whole.begin(), whole.begin() + 96));
    dropped.insert(whole.begin() + 96, whole.end());
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end());
  }
  EXPECT_GT(dropped.size(), 7u);  // not the same seven each time
}

// Row 24: slices of all ranks are the batch, whatever their number.
TEST(OlmoCoreOrder, RankSlicesCoverTheBatch) {
  Ids ten(10);
  std::iota(ten.begin(), ten.end(), 0);
  EXPECT_EQ(rank_slice(ten, 0, 3), (Ids{0, 3, 6, 9}));
  EXPECT_EQ(rank_slice(ten, 1, 3), (Ids{1, 4, 7}));
  EXPECT_EQ(rank_slice(ten, 2, 3), (Ids{2, 5, 8}));
  EXPECT_EQ(host_slice(ten, 1, 2), (Ids{5, 6, 7, 8, 9}));
}

// Derived: an order with warm-up is the unbroken token stream of its epoch, cut in other places, and a resume needs the step only.
TEST(OlmoCoreOrder, WarmUpCutsTheSameStream) {
  const std::vector<BatchStage> stages = {{5, 8}, {9, 16}, {11, 4}};
  const auto order = olmo(200, 4, 9, stages);
  Ids stream;
  for (int64_t step = 1; step <= 20; ++step) {
    const Ids batch = olmo(200, 4, 9, stages)->batch(step);
    EXPECT_EQ(batch, order->batch(step));
    EXPECT_EQ(static_cast<int64_t>(batch.size()), order->batch_size(step));
    stream.insert(stream.end(), batch.begin(), batch.end());
  }
  const Ids whole = epoch_order(*order, 1);
  ASSERT_EQ(stream.size(), 4u * 4 + 4 * 8 + 2 * 16 + 10 * 4);
  EXPECT_TRUE(std::equal(stream.begin(), stream.end(), whole.begin()));
}

// The rest of an epoch that holds no whole batch of the new size is dropped; after an epoch's end any multiple may begin.
TEST(OlmoCoreOrder, WarmUpAtTheEndOfAnEpoch) {
  const Ids second = epoch_order(*olmo(25, 8, 1), 2);
  const auto grown = olmo(25, 8, 1, {{4, 16}});  // three batches of 8 end the epoch, although 3 is odd
  EXPECT_EQ(grown->epoch(4), 2);
  EXPECT_EQ(grown->batch(4), Ids(second.begin(), second.begin() + 16));
  const auto shrunk = olmo(25, 8, 1, {{4, 1}});  // one more instance fits
  EXPECT_EQ(shrunk->epoch(4), 1);
  EXPECT_EQ(shrunk->batch(4), Ids{epoch_order(*shrunk, 1)[24]});
  EXPECT_EQ(shrunk->batch(5), Ids{second[0]});
  const auto half = olmo(28, 8, 1, {{3, 16}});  // 16 of 28 done, 12 left: no whole batch
  EXPECT_EQ(half->epoch(3), 2);
  EXPECT_EQ(half->batch(3).size(), 16u);
}

// One permutation serves all threads, and two epochs at once.
TEST(OlmoCoreOrder, ThreadsAndEpochEdges) {
  const auto order = olmo(1000, 7, 3);
  std::vector<Ids> expected;
  for (int64_t step = 1; step <= 430; ++step) expected.push_back(olmo(1000, 7, 3)->batch(step));
  std::atomic<int64_t> next{1}, wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int64_t step = next++; step <= 430; step = next++) wrong += order->batch(step) != expected[static_cast<size_t>(step - 1)];
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(OlmoCoreOrder, ImpossibleSettingsSayTheNumbers) {
  const auto refusal = [](const OrderSettings& settings) { return test::message_of<ConfigError>([&] { make_order(settings); }); };
  const OrderSettings good{.dialect = Dialect::kOlmoCore, .instances = 16, .batch = 4, .seed = 1};
  EXPECT_EQ(refusal(good), "");
  const auto with = [&](auto change) {
    OrderSettings settings = good;
    change(settings);
    return refusal(settings);
  };
  EXPECT_NE(with([](OrderSettings& s) { s.instances = 0xffffffff; }).find("4294967295"), std::string::npos);
  EXPECT_NE(with([](OrderSettings& s) { s.chunk = 3; }).find("chunks of 3 among 16"), std::string::npos);
  EXPECT_NE(with([](OrderSettings& s) { s.chunk = 0; }), "");
  EXPECT_NE(with([](OrderSettings& s) { s.batch = 17; }).find("17 instances a step"), std::string::npos);
  EXPECT_NE(with([](OrderSettings& s) { s.hosts = 2; }).find("2 hosts"), std::string::npos);
  EXPECT_NE(with([](OrderSettings& s) { s.workers = 2; }), "");
  EXPECT_NE(with([](OrderSettings& s) { s.stages = {{3, 6}}; }).find("6 after 4"), std::string::npos);
  EXPECT_NE(with([](OrderSettings& s) { s.stages = {{2, 8}}; }).find("1 batches of 4 done"), std::string::npos);
  EXPECT_NE(with([](OrderSettings& s) { s.stages = {{3, 8}, {3, 16}}; }).find("step 3 after step 3"), std::string::npos);
  EXPECT_NE(with([](OrderSettings& s) { s.stages = {{3, 32}}; }), "");
  EXPECT_EQ(with([](OrderSettings& s) { s.stages = {{3, 8}, {4, 4}}; }), "");
  EXPECT_NE(with([](OrderSettings& s) { s.first_epoch = -1; }), "");
}

}  // namespace
}  // namespace dz::data
