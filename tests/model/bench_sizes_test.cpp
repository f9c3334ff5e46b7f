// The sizes that speed is measured on against the figures that the peers' README gives for theirs.
#include "model/bench_sizes.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace dz::model {
namespace {

TEST(BenchSizes, OperationsPerTokenAreThePeersOwn) {
  const struct {
    const char* name;
    double mflop;
  } kExpected[] = {{"nano", 61.7}, {"60m", 320.1}, {"190m", 1187.9}, {"190m-2048", 1233.9}};
  for (const auto& [name, mflop] : kExpected) {
    const BenchSize& size = bench_size(name, "--model");
    EXPECT_NEAR(flops_per_token(size.config, size.seq_len) * 1e-6, mflop, 0.05) << name;
    EXPECT_GT(flops_per_token(size.config, size.seq_len + 1) - flops_per_token(size.config, size.seq_len), 0) << name;
  }
}

TEST(BenchSizes, TheLargestIsOlmoCores190M) { EXPECT_EQ(num_params(bench_size("190m", "--model").config), 267'424'512); }

TEST(BenchSizes, AStepIsAWholeNumberOfMicroBatches) {
  for (const BenchSize& size : bench_sizes()) {
    EXPECT_EQ(size.tokens_per_step % size.rows(), 0) << size.name;
    EXPECT_EQ(size.window * 2, size.seq_len) << size.name;
    EXPECT_EQ(size.config.window_of(3), 0) << size.name;
    EXPECT_EQ(size.config.window_of(0), size.window) << size.name;
  }
}

// The scripts that measure other systems read theirs from a file.
TEST(BenchSizes, AreThoseThatOtherSystemsAreMeasuredAt) {
  std::ifstream file(DZ_SOURCE "/bench/peers/sizes.json");
  const nlohmann::json sizes = nlohmann::json::parse(file);
  EXPECT_EQ(sizes.size(), bench_sizes().size());
  for (const BenchSize& size : bench_sizes()) {
    const ModelConfig& config = size.config;
    const nlohmann::json expected = {{"d_model", config.d_model},      {"n_layers", config.n_layers}, {"n_heads", config.n_heads},
                                     {"head_dim", config.head_dim},    {"d_ff", config.d_ff},         {"vocab", config.vocab_size},
                                     {"seq_len", size.seq_len},        {"window", size.window},       {"tokens_per_step", size.tokens_per_step},
                                     {"micro_batch", size.micro_batch}};
    EXPECT_EQ(sizes[size.name], expected) << size.name;
  }
}

TEST(BenchSizes, AnUnknownNameIsAnErrorThatListsTheOthers) {
  try {
    bench_size("7b", "--model");
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("190m-2048"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace dz::model
