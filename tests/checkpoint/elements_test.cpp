#include "checkpoint/elements.h"

#include <gtest/gtest.h>
#include <immintrin.h>

#include <bit>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/file.h"

namespace dz::checkpoint {
namespace {

using Json = nlohmann::json;

uint32_t bits_of(const Json& hex) { return static_cast<uint32_t>(std::stoul(hex.get<std::string>(), nullptr, 16)); }

bool is_nan(uint32_t bits, uint32_t infinity) { return (bits & (infinity | (infinity - 1))) > infinity; }

// torch 2.15.0, CPU. Which NaN torch gives depends on its vector form, so any NaN passes (goldens' README).
TEST(Elements, RoundAsTorchDoes) {
  const Json golden = Json::parse(read_file(fs::path(DZ_GOLDEN) / "numerics/f32_to_bf16.json"));
  ASSERT_EQ(golden["f32"].size(), 127u);
  int nans = 0, denormals = 0;
  for (size_t i = 0; i < golden["f32"].size(); ++i) {
    const uint32_t f32 = bits_of(golden["f32"][i]);
    if (is_nan(f32, 0x7f800000u)) {
      EXPECT_TRUE(is_nan(bits_to_bf16(f32), 0x7f80u)) << std::hex << f32;
      EXPECT_TRUE(is_nan(bits_to_f16(f32), 0x7c00u)) << std::hex << f32;
      ++nans;
      continue;
    }
    denormals += (f32 & 0x7f800000u) == 0 && (f32 & 0x7fffffu) != 0;
    EXPECT_EQ(bits_to_bf16(f32), bits_of(golden["bf16"][i])) << std::hex << f32;
    EXPECT_EQ(bits_to_f16(f32), bits_of(golden["f16"][i])) << std::hex << f32;
  }
  EXPECT_GE(nans, 4);
  EXPECT_GE(denormals, 4);
}

TEST(Elements, WhatWasWidenedComesBackBitForBit) {
  std::vector<uint16_t> all(65536), back(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  std::vector<float> wide(all.size());
  for (const char* dtype : {"BF16", "F16"}) {
    widen(dtype, std::as_bytes(std::span(all)), wide);
    narrow(wide, dtype, std::as_writable_bytes(std::span(back)));
    EXPECT_EQ(back, all) << dtype << ", every NaN payload among them";
  }
}

// Every f32 of a fine grid over the range of halves, against the CPU's own conversion.
TEST(Elements, HalvesRoundAsTheCpuDoes) {
  for (uint32_t upper = 0; upper < 0x10000u; upper += 3) {
    for (const uint32_t lower : {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x2fffu, 0x3000u, 0x8000u, 0xffffu}) {
      const uint32_t f32 = upper << 16 | lower;
      if (is_nan(f32, 0x7f800000u)) continue;
      ASSERT_EQ(bits_to_f16(f32), _cvtss_sh(std::bit_cast<float>(f32), _MM_FROUND_TO_NEAREST_INT)) << std::hex << f32;
    }
  }
}

}  // namespace
}  // namespace dz::checkpoint
