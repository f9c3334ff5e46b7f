#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>

#include "base/error.h"
#include "data/golden_datasets.h"
#include "data/loader.h"
#include "data/vsl_order.h"

namespace dz::data {
namespace {

using nlohmann::json;
using test::MemoryStore;
using test::message_of;
using Numbers = std::vector<int64_t>;

std::shared_ptr<MemoryStore> golden_store() {
  auto store = std::make_shared<MemoryStore>(Vocabulary{.size = 100278, .eos_id = 100257, .pad_id = 100277});
  for (const std::string name : {"tokens/part-000000.npy", "tokens/part-000001.npy", "tokens/part-000002.npy"})
    store->add_file(DZ_GOLDEN "/data/" + name, name);
  return store;
}

VslCurriculum curriculum_of(const std::string& repr) {
  VslCurriculum curriculum;
  if (repr.starts_with("VSLGrowP2")) curriculum.kind = CurriculumKind::kGrowP2;
  if (repr.starts_with("VSLGrowLinear")) curriculum.kind = CurriculumKind::kGrowLinear;
  const size_t cycles = repr.find("num_cycles=");
  if (cycles != std::string::npos) curriculum.cycles = std::stoll(repr.substr(cycles + 11));
  curriculum.balanced = repr.find("balanced=True") != std::string::npos;
  return curriculum;
}

constexpr VslSettings kGolden{.min_length = 4, .max_length = 32};

// Everything that OLMo-core's data set and loader say of three files: pieces, buckets, batches of every rank, names.
void compare(const json& row, uint64_t seed_change, bool expect_equal) {
  const auto store = golden_store();
  const VslCurriculum curriculum = curriculum_of(row["curriculum"]);
  const auto dataset = vsl_dataset(store, kGolden);
  ASSERT_EQ(dataset->instances(), row["length"].get<int64_t>());
  EXPECT_EQ(olmo_core_fingerprint(*store, kGolden, curriculum), row["fingerprint"].get<std::string>());
  EXPECT_EQ(olmo_core_name(curriculum), row["state"]["vsl_curriculum"].get<std::string>());
  Numbers lengths;
  for (int64_t id = 0; id < dataset->instances(); ++id) lengths.push_back(dataset->length(id));
  EXPECT_EQ(lengths, row["instance_lengths"].get<Numbers>());
  json offsets = json::array(), instances = json::array(), batches = json::array();
  for (const DatasetSource& source : dataset->sources()) offsets.push_back({source.first, source.first + source.instances});
  for (const LengthBucket& bucket : length_buckets(*dataset, 4, row["global_batch_size"], curriculum)) {
    instances.push_back({bucket.length, bucket.instances});
    batches.push_back({bucket.length, bucket.batches});
  }
  EXPECT_EQ(offsets, row["offsets"]);
  EXPECT_EQ(instances, row["instances_per_bucket"]);
  EXPECT_EQ(batches, row["batches_per_bucket"]);

  const VslOrderSettings settings{
      .min_length = 4, .batch_tokens = row["global_batch_size"], .seed = row["seed"].get<uint64_t>() + seed_change, .curriculum = curriculum};
  const auto order = vsl_order(*dataset, settings);
  const int64_t ranks = row["dp_world_size"], total = row["batch_order"].size(), first = (row["epoch"].get<int64_t>() - 1) * total + 1;
  EXPECT_EQ(order->epoch(first), row["epoch"].get<int64_t>());
  EXPECT_EQ(order->epoch(first + total), row["epoch"].get<int64_t>() + 1);
  json per_rank = json::array();
  for (int64_t rank = 0; rank < ranks; ++rank) {
    json of_rank = json::array();
    // Backwards: the batch of a step needs none before it.
    for (int64_t step = first + total - 1; step >= first; --step) {
      const Numbers batch = order->batch(step);
      EXPECT_EQ(std::ssize(batch), order->batch_size(step));
      of_rank.insert(of_rank.begin(), contiguous_slice(batch, rank, ranks));
    }
    per_rank.push_back(of_rank);
  }
  EXPECT_EQ(per_rank == row["batches_per_rank"], expect_equal) << row["curriculum"];
}

TEST(Vsl, EqualsOlmoCoresDataSetAndLoader) {
  const json golden_rows = test::data_golden("vsl_mixture.json")["vsl"];
  for (const json& row : golden_rows) {
    compare(row, 0, true);
    compare(row, 1, false);
  }
  EXPECT_EQ(golden_rows.size(), 2u);
}

TEST(Vsl, EveryCurriculumOrdersItsBatchesAsInOlmoCore) {
  int orders = 0, refused = 0;
  const json golden_rows = test::data_golden("pieces.json")["vsl_batch_order"];
  for (const json& row : golden_rows) {
    std::vector<LengthBucket> buckets;
    for (const json& bucket : row["batches_per_bucket"]) buckets.push_back({.length = bucket[0], .batches = bucket[1]});
    const VslCurriculum curriculum = curriculum_of(row["curriculum"]);
    EXPECT_EQ(python_repr(curriculum), row["curriculum"].get<std::string>());
    const auto make = [&] { return curriculum_order(buckets, curriculum, row["seed"].get<uint64_t>()); };
    if (row.contains("error")) {
      EXPECT_THROW(make(), ConfigError) << row;
      ++refused;
      continue;
    }
    EXPECT_EQ(make(), row["order"].get<std::vector<uint32_t>>()) << row["curriculum"];
    ++orders;
  }
  EXPECT_EQ(orders + refused, 10);
  EXPECT_GE(orders, 6);
}

TEST(Vsl, PowersAndSharesAreOlmoCores) {
  const json golden = test::data_golden("pieces.json");
  for (const json& row : golden["capped_powers_of_2"]) EXPECT_EQ(capped_powers_of_two(row[0], row[1]), row[2].get<Numbers>()) << row;
  for (const json& row : golden["divide_into_buckets"]) EXPECT_EQ(divide_into_shares(row[0], row[1]), row[2].get<Numbers>()) << row;
}

TEST(Vsl, PiecesAreTheDocumentsTokensInOrder) {
  auto store = std::make_shared<MemoryStore>(Vocabulary{.size = 2000, .eos_id = 0});
  std::vector<int32_t> tokens;
  for (int32_t i = 1; i <= 50; ++i) tokens.push_back(1000 + i);  // 51 with its EOS: 16, 16, 16, 2 and 1 that is dropped
  tokens.push_back(0);
  store->add("a", tokens);
  const auto dataset = vsl_dataset(store, {.min_length = 2, .max_length = 16});
  ASSERT_EQ(dataset->instances(), 4);
  std::vector<int32_t> joined;
  for (int64_t id = 0; id < 4; ++id) {
    const test::OwnedRow row(*dataset, id);
    joined.insert(joined.end(), row.tokens.begin(), row.tokens.end());
  }
  EXPECT_EQ(joined, std::vector<int32_t>(tokens.begin(), tokens.begin() + 50));
  EXPECT_EQ(dataset->dropped_tokens(), 1);
  EXPECT_EQ(describe(*dataset)[0], "a: 4 instances of up to 16 tokens, 1 of 51 tokens are not used");
}

// Lengths up to the largest of a type are kept: OLMo-core stores 256 as 0 when that is the longest.
TEST(Vsl, TheLongestLengthIsNotLost) {
  auto store = std::make_shared<MemoryStore>(Vocabulary{.size = 10, .eos_id = 0});
  std::vector<int32_t> tokens(600, 1);
  tokens.back() = 0;
  store->add("a", tokens);
  const auto dataset = vsl_dataset(store, {.min_length = 2, .max_length = 256});
  EXPECT_EQ(dataset->length(0), 256);
  EXPECT_EQ(length_buckets(*dataset, 2, 256, {}).back().instances, 2);
}

TEST(Vsl, AnEpochHasEveryInstanceOnceAndBatchesOfOneLength) {
  const auto dataset = vsl_dataset(golden_store(), kGolden);
  for (const bool shuffle : {true, false}) {
    const auto order = vsl_order(*dataset, {.min_length = 4, .batch_tokens = 64, .seed = 5, .shuffle = shuffle});
    Numbers whole(static_cast<size_t>(dataset->instances()));
    order->epoch_order(3, 0, whole);
    EXPECT_EQ(std::set<int64_t>(whole.begin(), whole.end()).size(), whole.size());
    Numbers batches;
    int64_t step = 1;
    while (order->epoch(step) < 3) ++step;
    for (; order->epoch(step) == 3; ++step) {
      const Numbers batch = order->batch(step);
      EXPECT_EQ(order->position(step), std::ssize(batches));
      for (const int64_t id : batch) EXPECT_EQ(dataset->length(id), dataset->length(batch.front()));
      EXPECT_EQ(order->position(step), std::ssize(batches));
      batches.insert(batches.end(), batch.begin(), batch.end());
    }
    EXPECT_TRUE(std::equal(batches.begin(), batches.end(), whole.begin()));
    Numbers part(40);
    order->epoch_order(3, 17, part);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 17));
  }
}

TEST(Vsl, BatchesAreTheSameForAnyThreadCount) {
  const auto dataset = vsl_dataset(golden_store(), kGolden);
  const std::shared_ptr<const Order> order = vsl_order(*dataset, {.min_length = 4, .batch_tokens = 64, .seed = 5});
  std::vector<Digest128> digests;
  for (int64_t step = 1; step <= 40; ++step) digests.push_back(make_batch(*dataset, order->batch(step), true).digest);
  for (const int threads : {0, 1, 4}) {
    Loader loader(dataset, order, {.threads = threads, .prefetch = 4});
    for (int64_t step = 1; step <= 40; ++step) EXPECT_EQ(loader.take(step).digest, digests[static_cast<size_t>(step) - 1]);
    EXPECT_EQ(loader.take(7).digest, digests[6]);
  }
}

TEST(Vsl, SettingsThatDoNotFitAreNamed) {
  const auto store = golden_store();
  EXPECT_THROW(vsl_dataset(store, {.min_length = 3, .max_length = 32}), ConfigError);
  EXPECT_THROW(vsl_dataset(store, {.min_length = 32, .max_length = 32}), ConfigError);
  EXPECT_THROW(vsl_dataset(store, {.min_length = 4, .max_length = 33}), ConfigError);
  const auto dataset = vsl_dataset(store, kGolden);
  EXPECT_EQ(message_of<ConfigError>([&] { vsl_order(*dataset, {.min_length = 4, .batch_tokens = 31}); }),
            "recipe.batch: found 31, expected at least 32 tokens, the longest instance");
  EXPECT_NE(message_of<ConfigError>([&] { vsl_order(*dataset, {.min_length = 4, .batch_tokens = 1 << 20}); }), "");
  EXPECT_THROW(vsl_order(*dataset, {.min_length = 4, .batch_tokens = 64, .curriculum = {.kind = CurriculumKind::kGrowP2, .cycles = 0}}), ConfigError);
  EXPECT_THROW(parse_curriculum("p2", "recipe.data.vsl.curriculum"), ConfigError);
}

}  // namespace
}  // namespace dz::data
