#include "train/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace dz::train {
namespace {

class MetricsTest : public testing::Test {
 protected:
  fs::path path_ = fs::temp_directory_path() / ("dz-metrics-" + std::to_string(::getpid()) + ".jsonl");
  void TearDown() override { fs::remove(path_); }
};

std::vector<int64_t> steps(const fs::path& path) {
  std::vector<int64_t> steps;
  std::istringstream lines(read_file(path));
  for (std::string line; std::getline(lines, line);) steps.push_back(nlohmann::json::parse(line).at("step").get<int64_t>());
  return steps;
}

TEST_F(MetricsTest, AResumeCutsBackSoThatEachStepIsThereOnce) {
  {
    MetricsLog log(path_, 0);
    for (int64_t step = 1; step <= 150; ++step) log.append({.step = step, .loss = 1});
  }
  File::append(path_).write("{\"step\": 151, \"lo");
  {
    MetricsLog log(path_, 100);
    EXPECT_EQ(log.removed_lines(), 51);
    for (int64_t step = 101; step <= 200; ++step) log.append({.step = step, .loss = 2});
  }
  const std::vector<int64_t> all = steps(path_);
  ASSERT_EQ(all.size(), 200u);
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], static_cast<int64_t>(i) + 1);
  EXPECT_NE(read_file(path_).find("\"step\":101,\"loss\":2.0"), std::string::npos);
}

TEST_F(MetricsTest, HexFloatsCarryEveryBit) {
  for (const float value : {0.0f, -0.0f, 1.0f, 5.3219f, -3.5f, 1e-30f, 3.4e38f}) {
    const float back = std::strtof(hex_float(value).c_str(), nullptr);
    EXPECT_EQ(std::bit_cast<uint32_t>(back), std::bit_cast<uint32_t>(value)) << hex_float(value);
  }
  EXPECT_EQ(hex_float(NAN), "nan");
  EXPECT_EQ(hex_float(-INFINITY), "-inf");
  EXPECT_NE(hex_float(1.0f), hex_float(std::nextafter(1.0f, 2.0f)));
}

TEST_F(MetricsTest, NonFiniteNumbersAreNullInJson) {
  const auto line = nlohmann::json::parse(to_json_line({.step = 1, .loss = NAN, .grad_norm = INFINITY}));
  EXPECT_TRUE(line["loss"].is_null());
  EXPECT_EQ(line["loss_hex"], "nan");
  EXPECT_EQ(line["grad_norm_hex"], "inf");
}

}  // namespace
}  // namespace dz::train
