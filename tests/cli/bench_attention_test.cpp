// `bench attention`: what it counts and what it says; how fast is not a test.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/run.h"

namespace dz {
namespace {

nlohmann::json record_of(const std::string& arguments) {
  const test::Outcome outcome = test::deltazero("bench attention --seconds 0 --json " + arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  return nlohmann::json::parse(outcome.text);
}

TEST(BenchAttention, CountsTheVisiblePairsOnly) {
  const nlohmann::json full = record_of("--seq 100 --heads 6 --kv-heads 2 --head-dim 32 --instances 3");
  ASSERT_EQ(full["rows"].size(), 1u);
  EXPECT_EQ(full["rows"][0]["pairs"], 3 * 6 * 100 * 101 / 2);
  EXPECT_EQ(full["rows"][0]["kv_heads"], 2);
  // Of 100 queries with a window of 30, the first 29 see fewer keys.
  const nlohmann::json windowed = record_of("--seq 100 --window 30 --heads 1 --head-dim 32 --instances 1 --dtype fp32 --threads 2");
  EXPECT_EQ(windowed["rows"][0]["pairs"], 29 * 30 / 2 + 71 * 30);
  EXPECT_EQ(windowed["threads"], 2);
  EXPECT_EQ(windowed["dtype"], "fp32");
}

TEST(BenchAttention, RatesBelongToTheirTimes) {
  const nlohmann::json row = record_of("--seq 64 --heads 2 --head-dim 16")["rows"][0];
  const double work = row["pairs"].get<double>() * 16 * 1e-9;
  EXPECT_NEAR(row["forward_gflops"].get<double>() * row["forward_s"].get<double>(), 4 * work, 1e-6 * work);
  EXPECT_NEAR(row["backward_gflops"].get<double>() * row["backward_s"].get<double>(), 8 * work, 1e-6 * work);
  EXPECT_NEAR(row["share"].get<double>() * row["peak_gflops"].get<double>(), row["gflops"].get<double>(), 1e-6 * row["gflops"].get<double>());
}

TEST(BenchAttention, WrongShapesAreUsageErrors) {
  EXPECT_EQ(test::deltazero("bench attention --seq 64 --heads 6 --kv-heads 4").code, 64);
  EXPECT_EQ(test::deltazero("bench attention --window 256").code, 64);  // a shape has a length
  EXPECT_EQ(test::deltazero("bench attention --seq 64 --head-dim 512").code, 64);
  EXPECT_EQ(test::deltazero("bench attention --seq 64 --dtype fp16").code, 64);
}

}  // namespace
}  // namespace dz
