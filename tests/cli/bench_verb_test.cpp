// What scripts read from `deltazero bench`.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace dz::test
