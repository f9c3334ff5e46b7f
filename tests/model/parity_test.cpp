// The statistics against those that the reference's script computed, and the bf16 run against its budget.
#include "model/parity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/thread_pool.h"
#include "model/golden.h"

namespace dz::model::test {
namespace {

std::vector<float> as_float(const std::vector<double>& values) { return {values.begin(), values.end()}; }

ParityStats compare(const std::vector<float>& golden, const std::vector<float>& ours, int64_t vocab) {
  Parity parity(vocab);
  parity.add(static_cast<int64_t>(golden.size()) / vocab, golden.data(), ours.data());
  return parity.stats();
}

TEST(Parity, StatisticsOfTheReferencesTwoRuns) {
  const GoldenFile expected("base/expected.safetensors"), bf16_run("base/bf16.safetensors");
  const nlohmann::json report = nlohmann::json::parse(read_file(golden("base/parity_f32_vs_bf16.json")));
  for (const std::string seq : {"1", "9", "48"}) {
    const std::string name = "T" + seq + ".logits";
    const ParityStats stats = compare(as_float(expected.numbers(name)), as_float(bf16_run.numbers(name)), 512);
    const nlohmann::json& wanted = report[seq];
    EXPECT_EQ(stats.positions, int64_t{wanted["positions"]});
    EXPECT_NEAR(stats.mean_kl, double{wanted["mean_kl"]}, 1e-12);
    EXPECT_NEAR(stats.max_kl, double{wanted["max_kl"]}, 1e-12);
    EXPECT_NEAR(stats.reverse_mean_kl, double{wanted["reverse_mean_kl"]}, 1e-12);
    EXPECT_NEAR(stats.max_abs, double{wanted["max_abs"]}, 1e-12);
    EXPECT_NEAR(stats.mean_abs, double{wanted["mean_abs"]}, 1e-12);
    EXPECT_NEAR(stats.top1_agreement, double{wanted["top1_agreement"]}, 1e-12);
    EXPECT_EQ(stats.top1_mismatches, int64_t{wanted["top1_mismatches"]});
    EXPECT_EQ(stats.ties, int64_t{wanted["mismatches_that_are_ties"]});
  }
}

TEST(Parity, OurBf16RunKeepsTheBudget) {
  ThreadPool pool(2);
  const auto pairs = compare_with_golden<bf16>(load_model(golden("base")), golden("base/expected.safetensors"), pool);
  ASSERT_EQ(pairs.size(), 4u);
  for (const ParityPair& pair : pairs) {
    EXPECT_LE(pair.stats.mean_kl, 1.5e-3) << pair.name;
    EXPECT_LE(pair.stats.max_kl, 6e-3) << pair.name;
    EXPECT_LE(pair.stats.mean_abs, 0.06) << pair.name;
    EXPECT_EQ(pair.stats.top1_mismatches, pair.stats.ties) << pair.name;
    EXPECT_GT(pair.stats.mean_kl, 1e-6) << "bf16 must differ from float32, or it was not bf16";
  }
}

TEST(Parity, EveryPairOfAFileInOrder) {
  ThreadPool pool(2);
  const auto pairs = compare_with_golden<float>(load_model(golden("gqa")), golden("gqa/expected.safetensors"), pool);
  std::vector<std::string> names;
  for (const ParityPair& pair : pairs) {
    names.push_back(pair.name);
    EXPECT_LE(pair.stats.max_kl, 1e-8) << pair.name;
    EXPECT_LE(pair.stats.max_abs, 6e-5) << pair.name;
    EXPECT_EQ(pair.stats.top1_agreement, 1.0) << pair.name;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"T1", "T9", "T48", "T96"}));
}

TEST(Parity, NoticesAWrongModel) {
  ThreadPool pool(1);
  LoadedModel model = load_model(golden("gqa"));
  model.config.window += 1;
  EXPECT_GT(compare_with_golden<float>(model, golden("gqa/expected.safetensors"), pool).back().stats.max_kl, 0.1);
  EXPECT_THROW(compare_with_golden<float>(model, golden("base/expected.safetensors"), pool), DataError);
  EXPECT_TRUE(compare_with_golden<float>(model, golden("gqa/grads.safetensors"), pool).empty());
}

TEST(Parity, NanIsNeverAPass) {
  const std::vector<float> right = {1, 2, 3, 4};
  const ParityStats stats = compare(right, {1, 2, NAN, 4}, 2);
  EXPECT_TRUE(std::isnan(stats.mean_kl));
  EXPECT_TRUE(std::isnan(stats.max_kl));
  EXPECT_TRUE(std::isnan(stats.max_abs));
  EXPECT_EQ(compare(right, right, 2).max_kl, 0.0);
}

}  // namespace
}  // namespace dz::model::test
