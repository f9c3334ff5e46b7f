// What holds in each dialect of the order.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <set>
#include <thread>

#include "base/error.h"
#include "data/order.h"
#include "data/temporary.h"

namespace dz::data {
namespace {

using Ids = std::vector<int64_t>;
constexpr Dialect kDialects[] = {Dialect::kKeyed, Dialect::kOlmoCore, Dialect::kMaxText};

TEST(OrderDialects, HaveNames) {
  for (const Dialect dialect : kDialects) EXPECT_EQ(dialect_named(name_of(dialect)), dialect);
  const std::string message = test::message_of<ConfigError>([] { dialect_named("olmo"); });
  EXPECT_NE(message.find("found 'olmo', expected keyed, olmo-core or maxtext"), std::string::npos) << message;
}

// The three never agree: another rule of seeds, of epochs and of slices.
TEST(OrderDialects, Differ) {
  std::set<Ids> orders;
  for (const Dialect dialect : kDialects) orders.insert(make_order({.dialect = dialect, .instances = 20, .batch = 20, .seed = 1})->batch(1));
  EXPECT_EQ(orders.size(), 3u);
}

// Rows 34 and 35, in each dialect: seeds and epochs give other permutations of the same set, none of them the identity.
TEST(OrderDialects, SeedAndEpochMatter) {
  for (const Dialect dialect : kDialects) {
    std::set<Ids> orders;
    Ids identity(11);
    std::iota(identity.begin(), identity.end(), 0);
    orders.insert(identity);
    for (uint64_t seed = 0; seed < 10; ++seed) {
      // OLMo-core's seed + epoch gives epoch 2 of seed 0 the order of epoch 1 of seed 1: seeds 100 apart do not meet here.
      const auto order = make_order({.dialect = dialect, .instances = 11, .batch = 11, .seed = 100 * seed});
      for (int64_t step = 1; step <= 10; ++step) {
        Ids ids = order->batch(step);
        EXPECT_EQ(order->epoch(step), step - 1 + first_epoch_of(dialect));
        orders.insert(ids);
        std::sort(ids.begin(), ids.end());
        EXPECT_EQ(ids, identity);
      }
    }
    EXPECT_EQ(orders.size(), 101u) << name_of(dialect);
  }
}

TEST(OrderDialects, SeedsOfAnySize) {
  const BigSeed seed = BigSeed::parse("1361129467683753853853498429727072845827", "seed");
  for (const Dialect dialect : {Dialect::kOlmoCore, Dialect::kMaxText})
    EXPECT_EQ(make_order({.dialect = dialect, .instances = 9, .batch = 9, .seed = seed})->batch(1).size(), 9u);
  EXPECT_THROW(make_order({.instances = 9, .batch = 9, .seed = seed}), ConfigError);
}

// Row 9: saved after any step of F1's 11 instances, the next batch is the next one, over the ends of epochs too.
TEST(OrderDialects, AResumeAfterAnyStepIsExact) {
  for (const Dialect dialect : kDialects) {
    for (const int64_t batch : {1, 2, 3}) {
      const OrderSettings settings{.dialect = dialect, .instances = 11, .batch = batch, .seed = 6};
      const auto unbroken = make_order(settings);
      std::vector<Ids> ids;
      for (int64_t step = 1; step <= 24; ++step) ids.push_back(unbroken->batch(step));
      for (int64_t saved = 0; saved < 24; ++saved) EXPECT_EQ(make_order(settings)->batch(saved + 1), ids[static_cast<size_t>(saved)]) << saved;
      EXPECT_NE(unbroken->batch(2), unbroken->batch(1));
    }
  }
}

// Rows 19, 23 and 27: 103 instances in batches of 8, read to the end of the twelfth batch: 96 different ones. The rest is dropped by olmo-core
// and comes next in the other two.
TEST(OrderDialects, NothingTwiceAndNothingSkippedInAnEpoch) {
  for (const Dialect dialect : kDialects) {
    const auto order = make_order({.dialect = dialect, .instances = 103, .batch = 8, .seed = 2});
    std::set<int64_t> seen;
    for (int64_t step = 1; step <= 12; ++step) {
      for (const int64_t id : order->batch(step)) EXPECT_TRUE(seen.insert(id).second);
    }
    EXPECT_EQ(seen.size(), 96u);
    for (const int64_t id : order->batch(13)) seen.insert(id);
    EXPECT_EQ(seen.size() == 103u, dialect != Dialect::kOlmoCore) << name_of(dialect);
  }
}

// Rows 24, 26 and 32, and reference 6.7, 7: the ranks of any world interleave over the same batch, so their tokens differ by one instance at most.
TEST(OrderDialects, RanksInterleaveOverTheSameBatch) {
  for (const Dialect dialect : kDialects) {
    const auto order = make_order({.dialect = dialect, .instances = 103, .batch = 10, .seed = 2});
    for (int64_t step = 1; step <= 25; ++step) {
      const Ids batch = order->batch(step);
      for (const int64_t ranks : {1, 2, 3, 4, 8}) {
        Ids joined(batch.size(), -1);
        for (int64_t rank = 0; rank < ranks; ++rank) {
          const Ids slice = rank_slice(batch, rank, ranks);
          EXPECT_TRUE(static_cast<int64_t>(slice.size()) == 10 / ranks || static_cast<int64_t>(slice.size()) == 10 / ranks + 1);
          for (size_t t = 0; t < slice.size(); ++t) joined[static_cast<size_t>(rank) + t * static_cast<size_t>(ranks)] = slice[t];
        }
        EXPECT_EQ(joined, batch);
      }
    }
  }
}

// Where a step begins, by epoch and place in it, leads to its instances.
TEST(OrderDialects, PositionsLeadToTheBatch) {
  for (const Dialect dialect : kDialects) {
    const auto order = make_order({.dialect = dialect, .instances = 44, .batch = 3, .seed = 2});
    for (int64_t step = 1; step <= 60; ++step) {
      int64_t id = -1;
      order->epoch_order(order->epoch(step), order->position(step), std::span(&id, 1));
      EXPECT_EQ(order->batch(step)[0], id) << name_of(dialect) << " step " << step;
    }
  }
}

int64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  int64_t total = 0, resident = 0;
  in >> total >> resident;
  return resident * 4096;
}

// 4 bytes an instance once a process, however many threads ask; two epochs at the most; nothing for the keyed order.
TEST(OrderDialects, MemoryIsThatOfThePermutations) {
  if (DZ_SANITIZED) GTEST_SKIP() << "sanitizers keep freed memory";
  // Blocks of this size go back to the system when freed, as those of a real run do; by default malloc would keep some of them.
  ::mallopt(M_MMAP_THRESHOLD, 1 << 20);
  constexpr int64_t kInstances = 4 << 20, kEpochBytes = 4 * kInstances, kSlack = 6 << 20;
  for (const Dialect dialect : kDialects) {
    const int64_t before = resident_bytes();
    const auto order = make_order({.dialect = dialect, .instances = kInstances, .batch = 1 << 10, .seed = 1});
    std::vector<std::thread> threads;
    for (int64_t i = 0; i < 4; ++i) threads.emplace_back([&, i] { order->batch(1 + i); });
    for (std::thread& thread : threads) thread.join();
    const int64_t one = resident_bytes() - before;
    for (int64_t epoch = 1; epoch < 4; ++epoch) order->batch(epoch * (kInstances >> 10) + 1);
    const int64_t four = resident_bytes() - before;
    EXPECT_LT(one, (dialect == Dialect::kKeyed ? 0 : kEpochBytes) + kSlack) << name_of(dialect);
    EXPECT_LT(four, (dialect == Dialect::kKeyed ? 0 : 2 * kEpochBytes) + kSlack) << name_of(dialect);
    if (dialect != Dialect::kKeyed) {
      EXPECT_GT(four, 2 * kEpochBytes - kSlack) << name_of(dialect);
    }
  }
}

}  // namespace
}  // namespace dz::data
