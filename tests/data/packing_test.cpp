#include "data/packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "base/error.h"
#include "data/goldens.h"
#include "data/temporary.h"

namespace dz::data {
namespace {

using nlohmann::json;
using Numbers = std::vector<int64_t>;

// Packed instances with the documents' numbers before sorting.
std::vector<Numbers> bins_of(const Numbers& lengths, int64_t capacity, TieRule rule) {
  const Numbers order = order_by_length(lengths, rule);
  Numbers sorted;
  for (const int64_t document : order) sorted.push_back(lengths[static_cast<size_t>(document)]);
  const Packing packing = pack(sorted, capacity);
  std::vector<Numbers> bins(static_cast<size_t>(packing.instances()));
  for (size_t i = 0; i < bins.size(); ++i) {
    for (const int64_t document : packing.instance(static_cast<int64_t>(i))) bins[i].push_back(order[static_cast<size_t>(document)]);
  }
  return bins;
}

TEST(Packing, EqualsOlmoCoreOnNumPysScalarPath) {
  const json golden = test::data_golden("packing.json");
  int ties = 0, other_cpus = 0;
  for (const json& row : golden["rows"]) {
    const auto lengths = row["lengths"].get<Numbers>();
    const int64_t capacity = row["max_sequence_length"];
    EXPECT_EQ(order_by_length(lengths, TieRule::kNumpyScalar), row["scalar"]["order"].get<Numbers>()) << row["name"];
    EXPECT_EQ(order_by_length(lengths, TieRule::kStable), row["stable_order"].get<Numbers>()) << row["name"];
    const auto bins = bins_of(lengths, capacity, TieRule::kNumpyScalar);
    EXPECT_EQ(bins, row["scalar"]["bins"].get<std::vector<Numbers>>()) << row["name"];
    EXPECT_EQ(capacity * std::ssize(bins) - row["tokens"].get<int64_t>(), row["padding"].get<int64_t>()) << row["name"];
    // The rules differ in which document fills a place, not in how instances are filled.
    const auto fill = [&](std::vector<Numbers> all) {
      for (Numbers& bin : all) {
        for (int64_t& document : bin) document = lengths[static_cast<size_t>(document)];
      }
      return all;
    };
    EXPECT_EQ(fill(bins), fill(bins_of(lengths, capacity, TieRule::kStable))) << row["name"];
    ties += row["scalar"]["order"] != row["stable_order"];
    other_cpus += row["avx512"] != "same";
  }
  EXPECT_EQ(ties, 25);
  EXPECT_EQ(other_cpus, 27);
}

// Row 44: lengths above 2^32 are sorted as what they are.
TEST(Packing, LengthsAre64Bit) {
  const Numbers lengths = {3, 0, 7, int64_t{1} << 33};
  for (const TieRule rule : {TieRule::kStable, TieRule::kNumpyScalar}) EXPECT_EQ(order_by_length(lengths, rule), (Numbers{3, 2, 0, 1}));
  const auto bins = bins_of({int64_t{1} << 33, 5, (int64_t{1} << 33) - 5}, int64_t{1} << 33, TieRule::kStable);
  EXPECT_EQ(bins, (std::vector<Numbers>{{0}, {2, 1}}));
}

// numpy's sort of a pattern that makes its median of three a bad pivot, so that it falls back to a heap sort: numpy 1.24.2, argsort(-lengths).
TEST(Packing, DeepSortsFallBackAsNumPyDoes) {
  const json golden = test::data_golden("argsort_killer.json");
  for (const json& row : golden["rows"]) {
    const auto lengths = row["lengths"].get<Numbers>();
    EXPECT_EQ(order_by_length(lengths, TieRule::kNumpyScalar), row["order"].get<Numbers>()) << row["name"];
  }
}

TEST(Packing, SmallCases) {
  EXPECT_EQ(pack({}, 8).instances(), 0);
  EXPECT_EQ(bins_of({8}, 8, TieRule::kStable), (std::vector<Numbers>{{0}}));
  EXPECT_EQ(bins_of({1, 8, 7}, 8, TieRule::kStable), (std::vector<Numbers>{{1}, {2, 0}}));
  // Equally full instances: the one that came to be so first.
  EXPECT_EQ(bins_of({5, 5, 3, 3}, 8, TieRule::kStable), (std::vector<Numbers>{{0, 2}, {1, 3}}));
  EXPECT_EQ(bins_of({6, 6, 6, 2, 2, 2, 1}, 9, TieRule::kStable), (std::vector<Numbers>{{0, 3, 6}, {1, 4}, {2, 5}}));
}

// The bin of each document must be the fullest that has room; checked by looking at all of them.
TEST(Packing, EqualsLookingAtEveryInstance) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    const int64_t capacity = 2 + static_cast<int64_t>(random() % 40);
    Numbers lengths(random() % 60);
    for (int64_t& length : lengths) length = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(capacity));
    std::sort(lengths.begin(), lengths.end(), std::greater<>());
    std::vector<Numbers> bins;
    Numbers rooms, since;  // since: when the bin came to have its room
    for (size_t document = 0; document < lengths.size(); ++document) {
      int64_t best = -1;
      for (size_t bin = 0; bin < bins.size(); ++bin) {
        if (rooms[bin] < lengths[document]) continue;
        const auto at = static_cast<size_t>(best);
        if (best < 0 || rooms[bin] < rooms[at] || (rooms[bin] == rooms[at] && since[bin] < since[at])) best = static_cast<int64_t>(bin);
      }
      if (best < 0) {
        best = std::ssize(bins);
        bins.emplace_back();
        rooms.push_back(capacity);
        since.push_back(0);
      }
      bins[static_cast<size_t>(best)].push_back(static_cast<int64_t>(document));
      rooms[static_cast<size_t>(best)] -= lengths[document];
      since[static_cast<size_t>(best)] = static_cast<int64_t>(document);
    }
    const Packing packing = pack(lengths, capacity);
    ASSERT_EQ(packing.instances(), std::ssize(bins));
    for (size_t i = 0; i < bins.size(); ++i) {
      const auto instance = packing.instance(static_cast<int64_t>(i));
      ASSERT_EQ(Numbers(instance.begin(), instance.end()), bins[i]) << round;
    }
  }
}

TEST(Packing, AMillionDocumentsInAMoment) {
  std::mt19937_64 random(11);
  Numbers lengths(1'000'000);
  for (int64_t& length : lengths) length = 1 + static_cast<int64_t>(random() % 8192);
  const auto start = std::chrono::steady_clock::now();
  const Numbers order = order_by_length(lengths, TieRule::kNumpyScalar);
  Numbers sorted(lengths.size());
  for (size_t i = 0; i < order.size(); ++i) sorted[i] = lengths[static_cast<size_t>(order[i])];
  const Packing packing = pack(sorted, 8192);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_LT(seconds, 5);
  RecordProperty("milliseconds", static_cast<int>(seconds * 1000));
  EXPECT_EQ(std::ssize(packing.documents), 1'000'000);
}

TEST(Packing, TieRulesAreNamed) {
  EXPECT_EQ(parse_tie_rule("numpy-scalar", ""), TieRule::kNumpyScalar);
  EXPECT_EQ(test::message_of<ConfigError>([] { parse_tie_rule("avx2", "recipe.data.ties"); }),
            "recipe.data.ties: found avx2, expected stable or numpy-scalar");
}

}  // namespace
}  // namespace dz::data
