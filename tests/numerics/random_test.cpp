#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/hash.h"
#include "numerics/functions64.h"
#include "numerics/philox.h"

namespace dz::numerics {
namespace {

TEST(Philox, KnownAnswersOfRandom123) {  // Random123 1.14, tests/kat_vectors, philox 4x32 10
  const PhiloxCounter zero = philox4x32({0, 0, 0, 0}, {0, 0});
  EXPECT_EQ(zero, (PhiloxCounter{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  const uint32_t ones = 0xffffffffu;
  EXPECT_EQ(philox4x32({ones, ones, ones, ones}, {ones, ones}), (PhiloxCounter{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
  EXPECT_EQ(philox4x32({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, {0xa4093822u, 0x299f31d0u}),
            (PhiloxCounter{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}));
}

TEST(RandomStream, KeyAndCounterAreWhatTheContractSays) {
  const std::string name = "model.norm.weight";
  std::string bytes("\x2a\x01\0\0\0\0\0\x80", 8);  // seed 0x800000000000012a, little-endian
  bytes += name;
  const uint64_t key = xxh3_64(std::as_bytes(std::span(bytes.data(), bytes.size())));
  const RandomStream stream(0x800000000000012au, name);
  const uint64_t index = 0x500000007u;
  const PhiloxCounter words = philox4x32({7, 5, 0, 0}, {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)});
  EXPECT_EQ(stream.bits(index), uint64_t{words[1]} << 32 | words[0]);
  EXPECT_EQ(stream.uniform(index), (static_cast<double>(stream.bits(index) >> 11) + 0.5) / 9007199254740992.0);
  EXPECT_NE(stream.bits(index), RandomStream(0x800000000000012bu, name).bits(index));
  EXPECT_NE(stream.bits(index), RandomStream(0x800000000000012au, "model.norm.bias").bits(index));
}

TEST(RandomStream, TruncatedNormalHasItsMomentsAndItsBounds) {
  constexpr size_t kCount = 200000;
  std::vector<float> values(kCount);
  fill_truncated_normal(RandomStream(1, "w"), 0.02, 0, values);
  double sum = 0, squares = 0, largest = 0;
  for (const float v : values) {
    sum += v;
    squares += double{v} * v;
    largest = std::max(largest, std::fabs(double{v}));
  }
  // Truncated at 3 sigma, the variance is 0.97334 sigma^2.
  EXPECT_NEAR(squares / kCount / (0.02 * 0.02), 0.97334, 0.01);
  EXPECT_NEAR(sum / kCount, 0.0, 0.02 * 0.01);
  EXPECT_LE(largest, 0.06);
  EXPECT_GE(largest, 0.0585) << "some values come close to the bound";
}

TEST(RandomStream, AnyRangeGivesTheSameElements) {
  std::vector<float> whole(1000), part(100);
  const RandomStream stream(9, "model.layers.0.mlp.up_proj.weight");
  fill_truncated_normal(stream, 0.02, 0, whole);
  fill_truncated_normal(stream, 0.02, 450, part);
  EXPECT_EQ(std::memcmp(part.data(), whole.data() + 450, part.size() * sizeof(float)), 0);
  fill_truncated_normal(stream, 0.02, 451, part);
  EXPECT_NE(std::memcmp(part.data(), whole.data() + 450, part.size() * sizeof(float)), 0);
  EXPECT_EQ(whole[3], static_cast<float>(0.02 * inverse_normal(0.0013498980316300946 + stream.uniform(3) * (1.0 - 2 * 0.0013498980316300946))));
}

}  // namespace
}  // namespace dz::numerics
