// Against maxtext 0.2.5 and Grain 0.2.18 (tests/golden/data/maxtext.json), where the golden's "right" is that code without its two faults.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/error.h"
#include "data/goldens.h"
#include "data/order.h"
#include "data/temporary.h"

namespace dz::data {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<int64_t>;

const Json& golden() {
  static const Json json = test::data_golden("maxtext.json");
  return json;
}

std::shared_ptr<const Order> maxtext(int64_t instances, int64_t host_batch, uint64_t seed, int64_t hosts = 1, int64_t workers = 0) {
  return make_order(
      {.dialect = Dialect::kMaxText, .instances = instances, .batch = host_batch * hosts, .seed = seed, .hosts = hosts, .workers = workers});
}

Ids host_batch(const Order& order, int64_t step, int64_t host) { return host_slice(order.batch(step), host, order.settings().hosts); }

Ids epoch_order(const Order& order, int64_t epoch) {
  Ids ids(static_cast<size_t>(order.instances()));
  order.epoch_order(epoch, 0, ids);
  return ids;
}

TEST(MaxTextOrder, HostOrders) {
  ASSERT_EQ(golden()["host_orders"].size(), 10u);
  for (const Json& row : golden()["host_orders"]) {
    const int64_t total = row["total"], hosts = row["hosts"], block = total / hosts;
    const auto order = maxtext(total, 1, row["seed"], hosts);
    const Ids ids = epoch_order(*order, row["epoch"]);
    for (int64_t host = 0; host < hosts; ++host)
      EXPECT_EQ(Ids(ids.begin() + host * block, ids.begin() + (host + 1) * block), row["per_host"][static_cast<size_t>(host)].get<Ids>())
          << row["seed"];
  }
}

// With batches of one instance a host's batches are its sampler's records; initial_step leaves records out.
TEST(MaxTextOrder, SamplerStreams) {
  ASSERT_EQ(golden()["sampler_stream"].size(), 4u);
  for (const Json& row : golden()["sampler_stream"]) {
    const auto order = maxtext(row["total"], 1, row["seed"], row["hosts"]);
    int64_t step = row["initial_step"].get<int64_t>() + 1;
    for (const Json& record : row["records"]) EXPECT_EQ(host_batch(*order, step++, row["host"]), Ids{record.get<int64_t>()}) << row["repr"];
  }
}

TEST(MaxTextOrder, BatchesOfGrainWorkers) {
  ASSERT_EQ(golden()["batches"].size(), 8u);
  for (const Json& row : golden()["batches"]) {
    const auto order = maxtext(25, row["batch"], row["seed"], row["hosts"], row["workers"]);
    int64_t step = 1;
    for (const Json& ids : row["batches"]) EXPECT_EQ(host_batch(*order, step++, row["host"]), ids.get<Ids>()) << row["workers"];
  }
}

// Reference 6.7, 1 and 2: over an epoch the hosts together take every instance once, save the remainder.
TEST(MaxTextOrder, HostsShareAnEpoch) {
  ASSERT_EQ(golden()["double_sharding"].size(), 4u);
  for (const Json& row : golden()["double_sharding"]) {
    const int64_t hosts = row["hosts"], steps = row["batches_in_one_epoch"];
    const auto order = maxtext(25, row["batch_per_host"], row["seed"], hosts);
    std::map<int64_t, int> counts;
    bool all_buggy = true;
    for (int64_t step = 1; step <= steps; ++step) {
      for (int64_t host = 0; host < hosts; ++host) {
        const Ids ids = host_batch(*order, step, host);
        const auto expected = [&](const char* kind) {
          return row[kind]["per_host"][static_cast<size_t>(host)][static_cast<size_t>(step - 1)].get<Ids>();
        };
        EXPECT_EQ(ids, expected("right")) << hosts << " hosts, step " << step;
        all_buggy = all_buggy && ids == expected("buggy");
        for (const int64_t id : ids) ++counts[id];
      }
    }
    EXPECT_EQ(all_buggy, hosts == 1);
    EXPECT_EQ(static_cast<int64_t>(counts.size()), row["right"]["distinct"].get<int64_t>());
    for (const auto& [id, count] : counts) EXPECT_EQ(count, 1) << id;
  }
}

TEST(MaxTextOrder, HostsCoverThePermutation) {
  for (const int64_t hosts : {2, 4, 8}) {
    const int64_t total = hosts * 3 * 5, block = 15;
    const auto order = maxtext(total, 3, 11, hosts);
    for (int64_t epoch = 0; epoch < 2; ++epoch) {
      Ids seen;
      for (int64_t host = 0; host < hosts; ++host) {
        for (int64_t b = 0; b < 5; ++b) {
          const Ids ids = host_batch(*order, epoch * 5 + b + 1, host);
          seen.insert(seen.end(), ids.begin(), ids.end());
        }
      }
      EXPECT_EQ(static_cast<int64_t>(seen.size()), hosts * block);
      EXPECT_EQ(seen, epoch_order(*order, epoch));
    }
  }
  const auto two = maxtext(8, 1, 0, 2);
  const Ids ids = epoch_order(*two, 0);
  for (int64_t step = 1; step <= 4; ++step)
    EXPECT_EQ(two->batch(step), (Ids{ids[static_cast<size_t>(step - 1)], ids[static_cast<size_t>(step + 3)]}));
}

// Case 18 and reference 6.6 B and C: after N + 1 steps the next batch is N + 2, for any number of workers; never what the reference re-reads.
TEST(MaxTextOrder, ResumesWithTheNextBatch) {
  ASSERT_EQ(golden()["resume"].size(), 12u);
  for (const Json& row : golden()["resume"]) {
    const int64_t done = row["checkpoint_folder"].get<int64_t>() + 1;
    const auto order = maxtext(25, 4, 42, 1, row["workers"]);
    for (int64_t i = 0; i < 3; ++i) {
      const Ids ids = order->batch(done + 1 + i);
      EXPECT_EQ(ids, row["unbroken_next"][static_cast<size_t>(i)].get<Ids>()) << row["workers"] << " after " << done;
      EXPECT_NE(ids, row["maxtext_resumes_with"][static_cast<size_t>(i)].get<Ids>());
    }
  }
}

// Reference 6.7, 5 and 6: any step is the same from a fresh object, for every worker count, several hosts and over the end of an epoch.
TEST(MaxTextOrder, EveryStepStandsAlone) {
  for (const int64_t workers : {0, 1, 2, 3, 4, 8}) {
    const auto order = maxtext(26, 3, 5, 4, workers);
    const int64_t per_host = 26 / 4, width = std::max<int64_t>(workers, 1);
    for (int64_t step = 1; step <= 2 * workers + 9; ++step) {
      const Ids batch = maxtext(26, 3, 5, 4, workers)->batch(step);
      EXPECT_EQ(batch, order->batch(step));
      const int64_t m = step - 1;
      for (int64_t host = 0; host < 4; ++host) {
        for (int64_t t = 0; t < 3; ++t) {
          const int64_t record = m % width + width * (m / width * 3 + t);
          const Ids ids = epoch_order(*order, record / per_host);
          EXPECT_EQ(batch[static_cast<size_t>(host * 3 + t)], ids[static_cast<size_t>(host * per_host + record % per_host)]);
        }
      }
    }
  }
}

// Without workers the stream of a host does not depend on how it is cut; with them it does, which is why they are part of the recipe.
TEST(MaxTextOrder, WorkersShapeTheBatches) {
  EXPECT_EQ(maxtext(25, 4, 42, 1, 0)->batch(3), maxtext(25, 4, 42, 1, 1)->batch(3));
  EXPECT_NE(maxtext(25, 4, 42, 1, 1)->batch(3), maxtext(25, 4, 42, 1, 2)->batch(3));
}

// Reference 3.6: 100,000 instances of seed 42, as 64-bit words.
TEST(MaxTextOrder, ALargeEpochEqualsThePublishedHash) {
  EXPECT_EQ(test::sha256_of_words<uint64_t>(epoch_order(*maxtext(100000, 1, 42), 0)),
            "ca164f14f61a4949c6a75afba97fd54880d8a54e667e787c0bb1368204e156b4");
}

TEST(MaxTextOrder, ImpossibleSettingsSayTheNumbers) {
  const auto refusal = [](const OrderSettings& settings) { return test::message_of<ConfigError>([&] { make_order(settings); }); };
  const OrderSettings good{.dialect = Dialect::kMaxText, .instances = 25, .batch = 4, .hosts = 2, .workers = 2};
  EXPECT_EQ(refusal(good), "");
  const auto with = [&](auto change) {
    OrderSettings settings = good;
    change(settings);
    return refusal(settings);
  };
  EXPECT_NE(with([](OrderSettings& s) { s.batch = 5; }).find("5 instances for 2 hosts"), std::string::npos);
  EXPECT_NE(with([](OrderSettings& s) { s.stages = {{3, 8}}; }).find("no batch-size warm-up"), std::string::npos);
  EXPECT_NE(with([](OrderSettings& s) { s.hosts = 0; }), "");
  EXPECT_NE(with([](OrderSettings& s) { s.workers = -1; }), "");
  EXPECT_NE(with([](OrderSettings& s) { s.chunk = 5; }), "");
  EXPECT_NE(with([](OrderSettings& s) {
              s.hosts = 26;
              s.batch = 26;
            }),
            "");
  EXPECT_NE(with([](OrderSettings& s) { s.instances = 0xffffffff; }), "");
}

}  // namespace
}  // namespace dz::data
