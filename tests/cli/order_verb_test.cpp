// deltazero order against the recorded orders of OLMo-core and MaxText, and what it refuses.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "cli/run.h"
#include "data/goldens.h"
#include "data/orders.h"

namespace dz::cli {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<int64_t>;

using test::Outcome;

Outcome order(const std::string& options) { return test::deltazero("order " + options); }

Ids ids_of(const std::string& options) {
  const Outcome outcome = order(options);
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  std::istringstream in(outcome.text);
  Ids ids;
  for (int64_t id = 0; in >> id;) ids.push_back(id);
  EXPECT_TRUE(in.eof()) << outcome.text;
  return ids;
}

TEST(OrderVerb, PrintsOlmoCoresEpochsAndSlices) {
  const Json golden = test::data_golden("loader.json");
  for (const Json& row : golden["orders"]) {
    const int64_t length = row["sequence_length"], batch = row["global_batch_size"].get<int64_t>() / length, ranks = row["dp_world_size"];
    std::string common = fmt::format("--dialect olmo-core --instances {} --seed {} --epoch {}", row["dataset_length"].get<int64_t>(),
                                     row["seed"].get<int64_t>(), row["epoch"].get<int64_t>());
    if (!row["max_target_sequence_length"].is_null())
      common += fmt::format(" --max-target {} --length {}", row["max_target_sequence_length"].get<int64_t>(), length);
    if (!row["shuffle"].get<bool>()) common += " --no-shuffle";
    EXPECT_EQ(ids_of(common), row["global_indices"].get<Ids>()) << common;
    const int64_t last = row["total_batches"];
    if (last == 0) continue;
    EXPECT_EQ(ids_of(fmt::format("{} --batch {} --step {} --rank {} --ranks {}", common, batch, last, ranks - 1, ranks)),
              row["batches_per_rank"][static_cast<size_t>(ranks - 1)][static_cast<size_t>(last - 1)].get<Ids>())
        << common;
  }
}

TEST(OrderVerb, PrintsMaxTextsHostsAndWorkers) {
  const Json golden = test::data_golden("maxtext.json");
  for (const Json& row : golden["host_orders"]) {
    const int64_t hosts = row["hosts"];
    EXPECT_EQ(ids_of(fmt::format("--dialect maxtext --instances {} --seed {} --epoch {} --rank {} --ranks {}", row["total"].get<int64_t>(),
                                 row["seed"].get<int64_t>(), row["epoch"].get<int64_t>(), hosts - 1, hosts)),
              row["per_host"].back().get<Ids>());
  }
  for (const Json& row : golden["batches"]) {
    const int64_t hosts = row["hosts"];
    EXPECT_EQ(ids_of(fmt::format("--dialect maxtext --instances 25 --seed {} --epoch 0 --batch {} --step 6 --rank {} --ranks {} --workers {}",
                                 row["seed"].get<int64_t>(), row["batch"].get<int64_t>() * hosts, row["host"].get<int64_t>(), hosts,
                                 row["workers"].get<int64_t>())),
              row["batches"][5].get<Ids>());
  }
}

TEST(OrderVerb, PrintsOurOwnOrder) {
  const Json golden = test::data_golden("keyed_order.json");
  for (const Json& row : golden["rows"]) {
    EXPECT_EQ(ids_of(fmt::format("--dialect keyed --instances {} --seed {} --batch {} --step {}", row["instances"].get<int64_t>(),
                                 row["seed"].get<uint64_t>(), row["batch"].get<int64_t>(), row["step"].get<int64_t>())),
              row["ids"].get<Ids>());
  }
}

TEST(OrderVerb, EpochsFollowEachOtherAndRanksShareThem) {
  const std::string common = "--dialect olmo-core --instances 100003 --seed 1361129467683753853853498429727072845827 ";
  const Ids whole = ids_of(common + "--epoch 2"), batch = ids_of(common + "--epoch 1 --batch 50001 --step 3");
  EXPECT_EQ(whole.size(), 100003u);
  EXPECT_EQ(batch, Ids(whole.begin(), whole.begin() + 50001));
  const Ids third = ids_of(common + "--epoch 2 --rank 2 --ranks 3");
  ASSERT_EQ(third.size(), 33334u);
  for (size_t i = 0; i < third.size(); ++i) ASSERT_EQ(third[i], whole[2 + 3 * i]);
}

TEST(OrderVerb, RefusesWhatGivesNoOrder) {
  const std::string good = "--dialect olmo-core --instances 25 --seed 1 ";
  EXPECT_EQ(order(good).code, 0);
  for (const char* extra : {"--epoch 0", "--batch 4", "--step 4", "--batch 26 --step 1", "--batch 0 --step 1", "--batch 4 --step 0", "--rank 1",
                            "--rank 2 --ranks 2", "--rank -1 --ranks 2", "--max-target 12 --length 5", "--max-target 16",
                            "--max-target 16 --length 8", "--workers -1", "--ranks 0", "--max-target 0 --length 0"})
    EXPECT_EQ(order(good + extra).code, 64) << extra;
  EXPECT_EQ(order("--dialect olmo --instances 25 --seed 1").code, 64);
  EXPECT_EQ(order("--dialect keyed --instances 0 --seed 1").code, 64);
  EXPECT_EQ(order("--dialect keyed --instances 25 --seed -1").code, 64);
  EXPECT_EQ(order("--dialect keyed --instances 25 --seed 18446744073709551616").code, 64);
  EXPECT_EQ(order("--dialect olmo-core --instances 4294967295 --seed 1").code, 64);
  for (const char* option : {"--instances", "--epoch", "--batch", "--workers"}) {
    const std::string others = std::string_view(option) == "--instances" ? "--dialect keyed --seed 1 " : good;
    const Outcome large = order(others + option + " 99999999999999999999");
    EXPECT_EQ(large.code, 64);
    EXPECT_NE(large.text.find(std::string(option) + ": found 99999999999999999999, expected"), std::string::npos) << large.text;
  }
  EXPECT_EQ(order("--dialect maxtext --instances 25 --seed 1 --batch 5 --step 1 --ranks 2").code, 64);
  EXPECT_EQ(order("--dialect maxtext --instances 25 --seed 1 --workers 2").code, 64);
  EXPECT_EQ(order("--dialect maxtext --instances 25 --seed 1 --ranks 26").code, 64);
  for (const char* dialect : {"keyed", "olmo-core", "maxtext"}) {
    const std::string any = fmt::format("--dialect {} --instances 25 --seed 1 ", dialect);
    EXPECT_EQ(order(any + "--batch 5 --step 9223372036854775807").code, 64);
    EXPECT_EQ(order(any + "--batch 25 --step 1000000000000 --epoch 4294967296").code, 0);
    EXPECT_EQ(order(any + "--epoch 9223372036854775807").code, 64);
  }
}

}  // namespace
}  // namespace dz::cli
