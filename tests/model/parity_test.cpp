// The statistics against those that the reference's script computed, and against cases that can be done by hand.
#include "model/parity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/thread_pool.h"
#include "model/golden.h"

namespace dz::model::test {
namespace {

using Rows = std::vector<float>;

Rows as_float(const std::vector<double>& values) { return {values.begin(), values.end()}; }

ParityStats compare(const Rows& reference, const Rows& ours, int64_t vocab, int threads = 1, int64_t rows_at_once = 0) {
  ThreadPool pool(threads);
  Parity parity(vocab, pool);
  const int64_t rows = static_cast<int64_t>(reference.size()) / vocab, step = rows_at_once > 0 ? rows_at_once : rows;
  for (int64_t row = 0; row < rows; row += step) {
    parity.add({.rows = std::min(step, rows - row),
                .reference = reference.data() + row * vocab,
                .reference_stride = vocab,
                .ours = ours.data() + row * vocab,
                .our_stride = vocab});
  }
  return parity.stats();
}

TEST(Parity, StatisticsOfTheReferencesTwoRuns) {
  const GoldenFile expected("base/expected.safetensors"), bf16_run("base/bf16.safetensors");
  const nlohmann::json report = nlohmann::json::parse(read_file(golden("base/parity_f32_vs_bf16.json")));
  for (const std::string seq : {"1", "9", "48"}) {
    const std::string name = "T" + seq + ".logits";
    const Rows reference = as_float(expected.numbers(name)), ours = as_float(bf16_run.numbers(name));
    const ParityStats stats = compare(reference, ours, 512);
    const nlohmann::json& wanted = report[seq];
    EXPECT_EQ(stats.positions, int64_t{wanted["positions"]});
    EXPECT_NEAR(stats.mean_kl, double{wanted["mean_kl"]}, 1e-12);
    EXPECT_NEAR(stats.max_kl, double{wanted["max_kl"]}, 1e-12);
    EXPECT_NEAR(stats.reverse_mean_kl, double{wanted["reverse_mean_kl"]}, 1e-12);
    EXPECT_NEAR(stats.max_abs, double{wanted["max_abs"]}, 1e-12);
    EXPECT_NEAR(stats.mean_abs, double{wanted["mean_abs"]}, 1e-12);
    EXPECT_NEAR(stats.cosine_min, double{wanted["cosine_min"]}, 1e-12);
    EXPECT_NEAR(stats.top1_agreement, double{wanted["top1_agreement"]}, 1e-12);
    // At T48 two bf16 logits are equal at the fifth place and torch takes the other one: one of 5 x 96.
    EXPECT_NEAR(stats.top5_overlap, double{wanted["top5_overlap"]}, seq == "48" ? 1.0 / 480 + 1e-12 : 1e-12);
    EXPECT_EQ(stats.top1_mismatches, int64_t{wanted["top1_mismatches"]});
    EXPECT_EQ(stats.ties, int64_t{wanted["mismatches_that_are_ties"]});
    EXPECT_EQ(static_cast<int64_t>(stats.mismatches.size()), stats.top1_mismatches);
    for (size_t row = 0; row < wanted["kl_per_position"].size(); ++row) {
      const Rows p(reference.begin() + static_cast<int64_t>(row) * 512, reference.begin() + static_cast<int64_t>(row + 1) * 512);
      const Rows q(ours.begin() + static_cast<int64_t>(row) * 512, ours.begin() + static_cast<int64_t>(row + 1) * 512);
      EXPECT_NEAR(compare(p, q, 512).mean_kl, double{wanted["kl_per_position"][row]}, 1e-12) << seq << " " << row;
    }
  }
}

// D(P || Q) of P = (1/2, 1/2), Q = (9/10, 1/10) is ln(5/3), the other way round ln(9/5) - ln(9)/10.
TEST(Parity, DirectionOfTheDivergence) {
  const Rows half = {3, 3}, skewed = {std::log(0.9f) + 7, std::log(0.1f) + 7};
  const ParityStats stats = compare(half, skewed, 2);
  EXPECT_NEAR(stats.mean_kl, std::log(5.0 / 3.0), 1e-6);
  EXPECT_NEAR(stats.reverse_mean_kl, std::log(9.0 / 5.0) - std::log(9.0) / 10.0, 1e-6);
  EXPECT_GT(std::abs(stats.mean_kl - stats.reverse_mean_kl), 0.1);
}

TEST(Parity, RanksOverlapsAndTies) {
  // Twelve tokens, likeliest first; ours moves the first one behind two others and the tenth out of the first ten.
  const Rows reference = {12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1};
  Rows ours = reference;
  ours[0] = 9.5f;
  ours[9] = 0;
  const ParityStats stats = compare(reference, ours, 12);
  EXPECT_EQ(stats.max_rank, 3);
  EXPECT_EQ(stats.mean_rank, 3.0);
  EXPECT_EQ(stats.top5_overlap, 1.0);
  EXPECT_EQ(stats.top10_overlap, 0.9);
  EXPECT_EQ(stats.max_abs, 3.0);
  EXPECT_NEAR(stats.rms, std::sqrt((2.5 * 2.5 + 9) / 12), 1e-15);
  ASSERT_EQ(stats.mismatches.size(), 1u);
  EXPECT_EQ(stats.mismatches[0].reference, 0);
  EXPECT_EQ(stats.mismatches[0].ours, 1);
  EXPECT_EQ(stats.mismatches[0].reference_gap, 1.0);
  EXPECT_EQ(stats.mismatches[0].our_gap, 1.0);
  EXPECT_TRUE(stats.mismatches[0].tie) << "a gap of 1 is below twice 3";
  // Equal logits: the lowest token is the likelier in both, so nothing differs.
  const ParityStats equal = compare({1, 5, 5, 5}, {1, 5, 5, 5}, 4);
  EXPECT_EQ(equal.top1_agreement, 1.0);
  EXPECT_EQ(equal.max_rank, 1);
  EXPECT_EQ(equal.cosine_min, 1.0);
  EXPECT_EQ(compare({1, 5, 5, 5}, {1, 4, 5, 5}, 4).max_rank, 3);
}

TEST(Parity, LossOfTheTargets) {
  ThreadPool pool(1);
  Parity parity(2, pool);
  const Rows reference = {0, 0, 5, 5}, ours = {0, std::log(3.0f), 5, 5};
  const std::vector<int32_t> targets = {1, -1};
  parity.add({.rows = 2, .reference = reference.data(), .reference_stride = 2, .ours = ours.data(), .our_stride = 2, .targets = targets.data()});
  EXPECT_EQ(parity.stats().targets, 1);
  EXPECT_NEAR(parity.stats().reference_loss, std::log(2.0), 1e-12);
  EXPECT_NEAR(parity.stats().loss, std::log(4.0 / 3.0), 1e-7);
  EXPECT_TRUE(std::isnan(compare(reference, ours, 2).loss)) << "no targets";
}

TEST(Parity, ColumnsBeyondTheComparedOnesHaveNoPart) {
  ThreadPool pool(1);
  Parity parity(2, pool);
  const Rows reference = {1, 2, 1e9f, 3, 4, -1e9f}, ours = {1, 2, 50, 60, 3, 4, 70, NAN};
  parity.add({.rows = 2, .reference = reference.data(), .reference_stride = 3, .ours = ours.data(), .our_stride = 4});
  EXPECT_EQ(parity.stats().max_kl, 0.0);
  EXPECT_EQ(parity.stats().max_abs, 0.0);
  EXPECT_EQ(parity.stats().max_rank, 1);
}

TEST(Parity, NeitherThreadsNorPiecesMoveABit) {
  const GoldenFile expected("base/expected.safetensors"), bf16_run("base/bf16.safetensors");
  const Rows p = as_float(expected.numbers("T48.logits")), q = as_float(bf16_run.numbers("T48.logits"));
  const ParityStats one = compare(p, q, 512), pieces = compare(p, q, 512, 3, 7);
  EXPECT_EQ(one.mean_kl, pieces.mean_kl);
  EXPECT_EQ(one.mean_abs, pieces.mean_abs);
  EXPECT_EQ(one.rms, pieces.rms);
  ASSERT_EQ(one.mismatches.size(), pieces.mismatches.size());
  for (size_t i = 0; i < one.mismatches.size(); ++i) EXPECT_EQ(one.mismatches[i].row, pieces.mismatches[i].row);
}

TEST(Parity, NanIsNeverAPass) {
  const Rows right = {1, 2, 3, 4};
  for (const Rows& wrong : {Rows{1, 2, NAN, 4}, Rows{NAN, 2, 3, 4}, Rows{1, 2, 3, INFINITY}}) {
    for (const ParityStats& stats : {compare(right, wrong, 2), compare(wrong, right, 2)}) {
      EXPECT_FALSE(stats.mean_kl <= 1e9);
      EXPECT_FALSE(stats.max_kl <= 1e9);
      EXPECT_FALSE(stats.max_abs <= 1e9);
    }
  }
  EXPECT_EQ(compare(right, right, 2).max_kl, 0.0);
}

TEST(Parity, ATokenWithoutProbabilityInBothAddsNothing) {
  const ParityStats stats = compare({1, 2, -INFINITY}, {1, 2, -INFINITY}, 3);
  EXPECT_EQ(stats.max_kl, 0.0);
  EXPECT_EQ(stats.max_abs, 0.0);
  EXPECT_EQ(compare({1, 2, 3}, {1, 2, -INFINITY}, 3).max_kl, INFINITY) << "impossible in ours, possible in the reference";
}

}  // namespace
}  // namespace dz::model::test
