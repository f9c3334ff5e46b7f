#include "parallel/lanes.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace dz::parallel {
namespace {

// The rule as a recursion over the lane number, written as an expression: what any schedule of merges must spell.
std::optional<std::string> expected(int64_t instances, int64_t lanes, Span node) {
  if (node.size() == 1) {
    if (lane_instances(instances, lanes, node.begin).size() == 0) return std::nullopt;
    return std::to_string(node.begin);
  }
  const int64_t middle = node.begin + node.size() / 2;
  const auto left = expected(instances, lanes, {node.begin, middle});
  const auto right = expected(instances, lanes, {middle, node.end});
  if (!left || !right) return left ? left : right;
  return "(" + *left + "+" + *right + ")";
}

// Plays a plan with expressions in place of gradients.
std::string played(int64_t instances, int64_t lanes, int64_t max_instances) {
  std::vector<std::string> slots;
  const auto merge = [&](int a, int b) {
    std::string& left = slots[static_cast<size_t>(a)];
    left = "(" + left + "+" + slots[static_cast<size_t>(b)] + ")";
  };
  LaneTree tree(instances, lanes, merge);
  for (const MicroBatch& micro : plan_micro_batches(instances, lanes, max_instances, {0, lanes})) {
    if (!micro.last_part) continue;
    slots.push_back(*expected(instances, lanes, micro.lanes));
    tree.add(micro.lanes, static_cast<int>(slots.size()) - 1);
  }
  return slots[static_cast<size_t>(tree.root())];
}

TEST(Lanes, HoldTheFloorRule) {
  EXPECT_EQ(lane_instances(12, 8, 0), (Span{0, 1}));
  EXPECT_EQ(lane_instances(12, 8, 1), (Span{1, 3}));
  EXPECT_EQ(lane_instances(3, 8, 0), (Span{0, 0}));
  EXPECT_EQ(lane_instances(3, 8, 2), (Span{0, 1}));
}

TEST(Lanes, EveryMicroBatchSizeSpellsTheSameTree) {
  for (const int64_t lanes : {1, 2, 8, 16}) {
    for (int64_t instances = 1; instances <= 37; ++instances) {
      const std::string tree = *expected(instances, lanes, {0, lanes});
      for (int64_t max_instances = 1; max_instances <= instances + 1; ++max_instances) {
        ASSERT_EQ(played(instances, lanes, max_instances), tree) << instances << " instances, " << lanes << " lanes, micro-batch " << max_instances;
      }
    }
  }
}

TEST(Lanes, PlansCoverEachInstanceOnceWithinTheBound) {
  for (int64_t instances = 1; instances <= 37; ++instances) {
    for (int64_t max_instances = 1; max_instances <= 9; ++max_instances) {
      int64_t next = 0;
      for (const MicroBatch& micro : plan_micro_batches(instances, 8, max_instances, {0, 8})) {
        ASSERT_EQ(micro.instances.begin, next);
        ASSERT_LE(micro.instances.size(), max_instances);
        ASSERT_TRUE(micro.lanes.size() == 1 || (micro.first_part && micro.last_part));
        next = micro.instances.end;
      }
      ASSERT_EQ(next, instances);
    }
  }
}

TEST(Lanes, ADroppedLaneIsNoticed) {
  LaneTree tree(8, 8, [](int, int) {});
  tree.add({0, 1}, 0);
  EXPECT_THROW(tree.add({2, 4}, 1), std::logic_error);
  EXPECT_THROW(tree.root(), std::logic_error);
}

// OLMo-core: data/utils.py split_batch. With one lane a batch is cut as there: rows in order, the last piece shorter.
TEST(Plan, OneLaneIsCutAsOlmoCoreSplitsABatch) {
  std::ifstream file(std::string(DZ_GOLDEN) + "/data/pieces.json");
  const nlohmann::json all = nlohmann::json::parse(file);
  const nlohmann::json& rows = all.at("split_batch");
  ASSERT_EQ(rows.size(), 4u);
  for (const nlohmann::json& row : rows) {
    const std::vector<MicroBatch> plan = plan_micro_batches(row.at("rows").get<int64_t>(), 1, row.at("micro").get<int64_t>(), {0, 1});
    ASSERT_EQ(plan.size(), row.at("parts").size());
    int64_t first = 0;
    for (size_t i = 0; i < plan.size(); ++i) {
      const auto count = static_cast<int64_t>(row.at("parts")[i].size());
      EXPECT_EQ(plan[i].instances, (Span{first, first + count}));
      first += count;
    }
  }
}

}  // namespace
}  // namespace dz::parallel
