// bf16 rounding and RoPE tables against what torch and transformers computed (golden/numerics).
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "numerics/rope.h"
#include "numerics/rounding.h"

namespace dz::numerics {
namespace {

const std::string kGolden = std::string(DZ_GOLDEN) + "/numerics/";

nlohmann::json read_json(const std::string& name) {
  std::ifstream file(kGolden + name);
  return nlohmann::json::parse(file);
}

uint32_t parse_bits(const nlohmann::json& value) { return static_cast<uint32_t>(std::stoul(value.get<std::string>(), nullptr, 16)); }

template <class Value>
std::vector<Value> read_tensor(const checkpoint::TensorSource& source, const std::string& name) {
  const checkpoint::StoredTensor& tensor = source.at(name);
  std::vector<Value> values(static_cast<size_t>(tensor.elements()));
  source.read(tensor, std::as_writable_bytes(std::span(values)));
  return values;
}

TEST(Bf16, RoundsLikeTorchOutsideOfNanAndDenormals) {
  const nlohmann::json golden = read_json("f32_to_bf16.json");
  ASSERT_GE(golden["f32"].size(), 100u);
  for (size_t i = 0; i < golden["f32"].size(); ++i) {
    const uint32_t pattern = parse_bits(golden["f32"][i]);
    const float x = std::bit_cast<float>(pattern);
    const uint32_t got = to_bf16(x).bits;
    if (x != x) {
      EXPECT_EQ(got, 0x7fc0u) << golden["f32"][i];
    } else if ((pattern & 0x7f800000u) == 0) {
      EXPECT_EQ(got, pattern >> 16 & 0x8000u) << golden["f32"][i];
    } else {
      EXPECT_EQ(got, parse_bits(golden["bf16"][i])) << golden["f32"][i];
    }
  }
}

TEST(Bf16, IsTheNearestAndTiesGoToEven) {
  for (uint32_t high = 0x0080; high < 0x7f80; high += 7) {
    const float below = to_float(bf16{static_cast<uint16_t>(high)});
    EXPECT_EQ(to_bf16(below).bits, high);
    const uint32_t middle = high << 16 | 0x8000u;
    EXPECT_EQ(to_bf16(std::bit_cast<float>(middle - 1)).bits, high);
    EXPECT_EQ(to_bf16(std::bit_cast<float>(middle)).bits, high + high % 2);
    EXPECT_EQ(to_bf16(std::bit_cast<float>(middle + 1)).bits, high + 1);
    EXPECT_EQ(to_bf16(-std::bit_cast<float>(middle + 1)).bits, (high + 1) | 0x8000u);
  }
}

TEST(Rope, InverseFrequenciesHaveTheBitsOfTheReference) {
  const nlohmann::json golden = read_json("rope.json");
  ASSERT_GE(golden["head_dims"].size(), 10u);
  for (const auto& [dim, entry] : golden["head_dims"].items()) {
    const std::vector<float> got = rope_inverse_frequencies({.head_dim = std::stoll(dim)});
    ASSERT_EQ(got.size(), entry["inv_freq_bits"].size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(std::bit_cast<uint32_t>(got[i]), parse_bits(entry["inv_freq_bits"][i])) << dim << " " << i;
  }
}

TEST(Rope, FloatAnglesAreNeededForTheBits) {
  // 1 / theta^x in double, rounded once, is another table: the golden notices it.
  const auto source = checkpoint::TensorSource::open(kGolden + "rope.safetensors");
  const auto expected = read_tensor<float>(source, "default.inv_freq");
  const auto exact = read_tensor<double>(source, "default.inv_freq64");
  const std::vector<float> got = rope_inverse_frequencies({.head_dim = 128});
  EXPECT_EQ(std::memcmp(got.data(), expected.data(), expected.size() * sizeof(float)), 0);
  int differ = 0;
  for (size_t i = 0; i < exact.size(); ++i) differ += static_cast<float>(exact[i]) != expected[i];
  EXPECT_EQ(differ, 18);
}

struct TableError {
  double to_reference = 0, to_exact = 0;
  double of_reference = 0;  // the reference's own distance from float64: what float angles cost
};

TableError error_at(const RopeTable& table, const checkpoint::TensorSource& source, size_t row, int64_t position) {
  TableError error;
  for (const char* name : {"cos", "sin"}) {
    const auto reference = read_tensor<float>(source, std::string("default.") + name);
    const auto exact = read_tensor<double>(source, std::string("default.") + name + "64");
    const std::vector<float>& values = name[0] == 'c' ? table.cos : table.sin;
    for (size_t i = 0; i < 64; ++i) {
      const double value = values[static_cast<size_t>(position) * 64 + i];
      error.to_reference = std::max(error.to_reference, std::fabs(value - double{reference[row * 64 + i]}));
      error.to_exact = std::max(error.to_exact, std::fabs(value - exact[row * 64 + i]));
      error.of_reference = std::max(error.of_reference, std::fabs(double{reference[row * 64 + i]} - exact[row * 64 + i]));
    }
  }
  return error;
}

TEST(Rope, TablesMatchTheReferenceAndFloat64) {
  const auto source = checkpoint::TensorSource::open(kGolden + "rope.safetensors");
  const auto positions = read_tensor<int64_t>(source, "positions");
  const RopeTable reference = make_rope_table({.head_dim = 128}, 65536, RopeTableKind::kReference);
  const RopeTable exact = make_rope_table({.head_dim = 128}, 65536, RopeTableKind::kExact);
  for (size_t row = 0; row < positions.size(); ++row) {
    const TableError as_reference = error_at(reference, source, row, positions[row]);
    const TableError as_exact = error_at(exact, source, row, positions[row]);
    EXPECT_LE(as_reference.to_reference, 1e-7) << positions[row];
    EXPECT_NEAR(as_reference.to_exact, as_reference.of_reference, 1e-7) << positions[row];
    EXPECT_LE(as_exact.to_exact, 3.1e-8) << positions[row];
  }
  EXPECT_EQ(positions.back(), 65535);
  EXPECT_GE(error_at(exact, source, positions.size() - 1, 65535).to_reference, 1e-3) << "the two kinds must differ at long positions";
}

TEST(Rope, NeighbouringPositionsDiffer) {  // in bf16 256 and 257 would be the same position
  const RopeTable table = make_rope_table({.head_dim = 128}, 8192, RopeTableKind::kReference);
  for (size_t p = 1; p < 8192; ++p) {
    ASSERT_NE(std::memcmp(table.cos.data() + p * 64, table.cos.data() + (p - 1) * 64, 64 * sizeof(float)), 0) << p;
  }
}

}  // namespace
}  // namespace dz::numerics
