// The faulty orders that audits are tested with are the recorded ones, and each is seen by what a test of orders looks at.
#include "data/wrong_orders.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "data/goldens.h"
#include "data/orders.h"

namespace dz::data {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<int64_t>;

std::shared_ptr<const Order> maxtext(int64_t instances, int64_t host_batch, uint64_t seed, int64_t hosts) {
  return make_order({.dialect = Dialect::kMaxText, .instances = instances, .batch = host_batch * hosts, .seed = seed, .hosts = hosts});
}

// Percent of the instances that one epoch's steps give never, once, twice or more.
struct Coverage {
  double never = 0, once = 0, more = 0;
};

Coverage coverage(const Order& order, int64_t steps) {
  std::vector<int> counts(static_cast<size_t>(order.instances()));
  for (int64_t step = 1; step <= steps; ++step) {
    for (const int64_t id : order.batch(step)) ++counts[static_cast<size_t>(id)];
  }
  Coverage result;
  for (const int count : counts) ++(count == 0 ? result.never : count == 1 ? result.once : result.more);
  for (double* value : {&result.never, &result.once, &result.more}) *value *= 100.0 / static_cast<double>(counts.size());
  return result;
}

TEST(WrongOrders, DoubleShardingIsTheRecordedOne) {
  const Json golden = test::data_golden("maxtext.json");
  for (const Json& row : golden["double_sharding"]) {
    const int64_t hosts = row["hosts"];
    const test::DoubleShardedOrder wrong(maxtext(25, row["batch_per_host"], row["seed"], hosts));
    for (int64_t step = 1; step <= row["batches_in_one_epoch"].get<int64_t>(); ++step) {
      for (int64_t host = 0; host < hosts; ++host)
        EXPECT_EQ(host_slice(wrong.batch(step), host, hosts),
                  row["buggy"]["per_host"][static_cast<size_t>(host)][static_cast<size_t>(step - 1)].get<Ids>())
            << hosts << " hosts, step " << step;
    }
  }
}

// reference 6.6 A: (1 - 1/N)^N of the instances are never seen in a nominal epoch.
TEST(WrongOrders, DoubleShardingLosesAThirdOfAnEpoch) {
  const struct {
    int64_t hosts;
    double never, once, more;
  } rows[] = {{32, 37, 37, 26}, {4, 32, 42, 26}};
  for (const auto& row : rows) {
    const int64_t block = 81920 / row.hosts;
    const auto right = maxtext(81920, 8, 7, row.hosts);
    const Coverage wrong = coverage(test::DoubleShardedOrder(right), block / 8), good = coverage(*right, block / 8);
    EXPECT_NEAR(wrong.never, row.never, 1) << row.hosts;
    EXPECT_NEAR(wrong.once, row.once, 1) << row.hosts;
    EXPECT_NEAR(wrong.more, row.more, 1) << row.hosts;
    EXPECT_EQ(good.once, 100) << row.hosts;
  }
}

TEST(WrongOrders, OffByOneReadsTheLastBatchAgain) {
  const auto right = maxtext(25, 4, 42, 1);
  const Json golden = test::data_golden("maxtext.json");
  int64_t rows = 0;
  for (const Json& row : golden["resume"]) {
    if (row["workers"] != 0) continue;
    const int64_t saved = row["checkpoint_folder"].get<int64_t>() + 1;
    const test::OffByOneOrder wrong(right, saved);
    for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(wrong.batch(saved + 1 + i), row["maxtext_resumes_with"][static_cast<size_t>(i)].get<Ids>());
    EXPECT_EQ(wrong.batch(saved), right->batch(saved));
    EXPECT_EQ(wrong.batch(saved + 1), right->batch(saved));
    ++rows;
  }
  EXPECT_EQ(rows, 3);
}

}  // namespace
}  // namespace dz::data
