// What scripts read from `deltazero bench`.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/run.h"

namespace dz::test {
namespace {

using Json = nlohmann::json;

TEST(BenchGemm, AModelIsOneLineWithEveryProduct) {
  const Outcome run = deltazero("bench gemm --model smoke --rounds 1 --threads 1 --json");
  ASSERT_EQ(run.code, 0) << run.text;
  const Json line = Json::parse(run.text);
  EXPECT_EQ(line["rows"], 512);
  double flops = 0, seconds = 0;
  const struct {
    const char* name;
    double inputs, outputs, count;
  } kLinears[] = {{"attention", 64, 64, 16}, {"gate_up", 64, 256, 8}, {"down", 256, 64, 4}, {"head", 64, 512, 1}};
  for (const auto& linear : kLinears) {
    for (const char* product : {"forward", "dx", "dw"}) {
      const double rate = line[std::string(linear.name) + "_" + product].get<double>();
      ASSERT_GT(rate, 0) << linear.name << product;
      const double work = 2e-9 * 512 * linear.inputs * linear.outputs * linear.count;
      flops += work;
      seconds += work / rate;
    }
  }
  // The total follows from its parts; each is printed to a tenth of a GFLOP/s.
  EXPECT_NEAR(line["gflops"].get<double>() / (flops / seconds), 1, 0.05);
  EXPECT_NEAR(line["tokens_per_s"].get<double>() / (512 / seconds), 1, 0.05);
  EXPECT_EQ(line["peak_gflops"].size(), 2u);
}

TEST(BenchGemm, AShapeIsOneLineAForm) {
  const Outcome run = deltazero("bench gemm --m 64 --n 96 --k 160 --rounds 1 --threads 1 --dtype fp32 --json");
  ASSERT_EQ(run.code, 0) << run.text;
  std::istringstream lines(run.text);
  int forms = 0;
  for (std::string text; std::getline(lines, text); ++forms) EXPECT_EQ(Json::parse(text)["n"], 96) << text;
  EXPECT_GE(forms, 1);
}

TEST(BenchGemm, ShapesAreWholeAndModelsKnown) {
  EXPECT_EQ(deltazero("bench gemm --m 64").code, 64);
  EXPECT_EQ(deltazero("bench gemm --m 64 --n 96 --k 0").code, 64);
  EXPECT_EQ(deltazero("bench gemm --model nano --m 64 --n 64 --k 64").code, 64);
  const Outcome unknown = deltazero("bench gemm --model 7b");
  EXPECT_EQ(unknown.code, 78);
  EXPECT_NE(unknown.text.find("190m-2048"), std::string::npos) << unknown.text;
}

TEST(BenchStep, IsOneLineWithTheKeysOfTheComparisonScripts) {
  const Outcome run = deltazero("bench step --model smoke --steps 2 --warmup 1 --threads 1 --certificates --json");
  ASSERT_EQ(run.code, 0) << run.text;
  const Json line = Json::parse(run.text);
  for (const char* key : {"tokens_per_s", "tokens_per_s_min", "tokens_per_s_max", "gflops", "step_ms", "forward_ms", "head_ms", "backward_ms",
                          "optimizer_ms", "digest_ms", "startup_s", "peak_rss_mb", "share_of_peak"})
    EXPECT_GT(line[key].get<double>(), 0) << key;
  EXPECT_EQ(line["tokens_per_step"], 1024);
  EXPECT_EQ(line["lanes"], 8);
  EXPECT_NEAR(line["gflops"].get<double>(), 1e-3 * line["tokens_per_s"].get<double>() * line["mflop_per_token"].get<double>(), 0.06);
  // The text is the same each time and bits do not depend on who carries the run.
  const Json other = Json::parse(deltazero("bench step --model smoke --steps 2 --warmup 1 --threads 2 --remat full --micro-batch 1 --json").text);
  EXPECT_EQ(other["final_loss"], line["final_loss"]);
  EXPECT_NE(Json::parse(deltazero("bench step --model smoke --steps 1 --warmup 1 --json").text)["final_loss"], line["final_loss"]);
}

TEST(BenchStep, TheProfileIsWrittenWhateverIsPrinted) {
  for (const char* json : {"", " --json"}) {
    const std::string path = ::testing::TempDir() + "bench_step_profile.json";
    std::remove(path.c_str());
    EXPECT_EQ(deltazero("bench step --model smoke --steps 1 --warmup 0 --profile " + path + json).code, 0);
    std::ifstream file(path);
    EXPECT_FALSE(Json::parse(file).at("traceEvents").empty()) << json;
  }
}

TEST(BenchStep, ASizeIsChangedByKeysThatExist) {
  const Json line = Json::parse(deltazero("bench step --model smoke --steps 1 --warmup 0 --set n_heads=2 --set head_dim=32 --json").text);
  EXPECT_EQ(line["parameters"], Json::parse(deltazero("bench step --model smoke --steps 1 --warmup 0 --json").text)["parameters"]);
  EXPECT_EQ(deltazero("bench step --model smoke --set n_head=2").code, 64);
  EXPECT_EQ(deltazero("bench step --model smoke --set head_dim=31").code, 78);
  EXPECT_EQ(deltazero("bench step --model smoke --set head_dim=258").code, 78);  // more than attention takes
  EXPECT_EQ(deltazero("bench step --model smoke --set seq_len=100").code, 64);
  EXPECT_EQ(deltazero("bench step --model smoke --set seq_len=1048577 --tokens-per-step 1048577").code, 64);  // longer than a RoPE table
  EXPECT_EQ(deltazero("bench step --model smoke --remat ful").code, 64);
}

TEST(BenchPasses, NamesEachOpOnceWithItsBytesAndRates) {
  const Outcome run = deltazero("bench passes --model smoke --megabytes 1 --seconds 0 --threads 1 --json");
  ASSERT_EQ(run.code, 0) << run.text;
  const Json line = Json::parse(run.text);
  std::map<std::string, double> bytes;
  for (const Json& row : line["rows"]) {
    for (const char* key : {"gbps", "copy_gbps", "cached_gbps", "copies"}) EXPECT_GT(row[key].get<double>(), 0) << row;
    EXPECT_NEAR(row["gbps"].get<double>() * row["seconds"].get<double>() * 1e9, row["bytes"].get<double>(), 1);
    EXPECT_TRUE(bytes.emplace(row["name"], row["bytes"]).second) << row;
  }
  // 512 rows of 64 in bf16, read and written; the gradient of logits takes half of their place; seven tensors of 64 x 256 floats.
  EXPECT_EQ(bytes.at("rmsnorm_forward bf16 512x64"), 2 * 2 * 512 * 64);
  EXPECT_EQ(bytes.at("cross_entropy bf16 128x512"), (4 + 2) * 128 * 512);
  EXPECT_EQ(bytes.at("adamw 16384"), 7 * 4 * 16384);
  for (const char* op : {"norm_weight_grad", "qk_norm_rope_forward", "qk_norm_rope_backward", "swiglu_forward", "swiglu_backward", "add", "embedding",
                         "cast_to_bf16", "squared_norms"})
    EXPECT_TRUE(std::ranges::any_of(bytes, [&](const auto& row) { return row.first.starts_with(op); })) << op;
  EXPECT_EQ(Json::parse(deltazero("bench passes --model smoke --megabytes 1 --seconds 0 --only adamw --dtype fp32 --json").text)["rows"].size(), 1u);
  EXPECT_EQ(deltazero("bench passes --model 7b").code, 78);
  EXPECT_EQ(deltazero("bench passes --megabytes 0").code, 64);
  EXPECT_EQ(deltazero("bench passes --model smoke --seconds nan").code, 64);
  const Outcome nothing = deltazero("bench passes --model smoke --only AdamW");
  EXPECT_EQ(nothing.code, 64);
  EXPECT_NE(nothing.text.find("adamw"), std::string::npos) << nothing.text;  // what there is
}

TEST(BenchDecode, GivesBothRatesAndTheirLimits) {
  const Outcome run = deltazero("bench decode --model smoke --prompt 40 --tokens 4 --threads 1 --json");
  ASSERT_EQ(run.code, 0) << run.text;
  const Json line = Json::parse(run.text);
  for (const char* key : {"prefill_tokens_per_s", "prefill_share_of_peak", "decode_tokens_per_s", "decode_share_of_read"})
    EXPECT_GT(line[key].get<double>(), 0) << key;
  EXPECT_EQ(deltazero("bench decode --model smoke --prompt 1048570 --tokens 7").code, 64);  // more than a RoPE table holds
  const Outcome profile = deltazero("bench decode --model smoke --prompt 40 --tokens 4 --threads 1 --profile");
  EXPECT_NE(profile.text.find("prefill  "), std::string::npos) << profile.text;
  EXPECT_NE(profile.text.find("decoding  "), std::string::npos) << profile.text;
  EXPECT_EQ(deltazero("bench decode --model smoke --profile --json").code, 64);
}

}  // namespace
}  // namespace dz::test
