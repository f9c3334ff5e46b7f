// YaRN against transformers and OLMo-core (bits and float64), and the mistakes that other programs made with it.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "checkpoint/safetensors.h"
#include "numerics/functions64.h"
#include "numerics/rope.h"

namespace dz::numerics {
namespace {

const std::string kGolden = std::string(DZ_GOLDEN) + "/numerics/";

// OLMo 3's: eight times 8,192.
RopeShape olmo3(int64_t head_dim = 128) {
  return {.head_dim = head_dim, .yarn = YarnScaling{.factor = 8, .attention_factor = yarn_attention_factor(8)}};
}

template <class Value>
std::vector<Value> read(const checkpoint::TensorSource& source, const std::string& name) {
  const checkpoint::StoredTensor& tensor = source.at(name);
  std::vector<Value> values(static_cast<size_t>(tensor.elements()));
  source.read(tensor, std::as_writable_bytes(std::span(values)));
  return values;
}

TEST(Yarn, InverseFrequenciesHaveTheBitsOfTheReference) {
  const auto source = checkpoint::TensorSource::open(kGolden + "rope.safetensors");
  const auto expected = read<float>(source, "yarn.inv_freq");
  const auto in_double = read<double>(source, "yarn.inv_freq64");
  const std::vector<float> got = rope_inverse_frequencies(olmo3());
  EXPECT_EQ(std::memcmp(got.data(), expected.data(), expected.size() * sizeof(float)), 0);
  // The float64 values, rounded once, are another table: the golden notices it.
  const std::vector<double> exact = exact_rope_inverse_frequencies(olmo3());
  int differ = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    EXPECT_NEAR(exact[i] / in_double[i], 1.0, 1e-12) << i;
    differ += static_cast<float>(exact[i]) != expected[i];
  }
  EXPECT_EQ(differ, 19);
}

double farthest_from_golden(RopeTableKind kind, const char* suffix) {
  const auto source = checkpoint::TensorSource::open(kGolden + "rope.safetensors");
  const auto positions = read<int64_t>(source, "positions");
  const RopeTable table = make_rope_table(olmo3(), 65536, kind);
  double most = 0;
  for (const char* name : {"cos", "sin"}) {
    const std::string tensor = std::string("yarn.") + name + suffix;
    std::vector<double> golden;
    if (*suffix == '\0') {
      const auto values = read<float>(source, tensor);
      golden.assign(values.begin(), values.end());
    } else {
      golden = read<double>(source, tensor);
    }
    const std::vector<float>& ours = name[0] == 'c' ? table.cos : table.sin;
    for (size_t row = 0; row < positions.size(); ++row) {
      for (size_t i = 0; i < 64; ++i)
        most = std::max(most, std::abs(double{ours[static_cast<size_t>(positions[row]) * 64 + i]} - golden[row * 64 + i]));
    }
  }
  return most;
}

TEST(Yarn, TablesMatchTheReferenceAndFloat64) {
  EXPECT_LE(farthest_from_golden(RopeTableKind::kReference, ""), 1.5e-7);
  EXPECT_LE(farthest_from_golden(RopeTableKind::kExact, "64"), 6.1e-8) << "half an ulp of a float below 2";
  EXPECT_GE(farthest_from_golden(RopeTableKind::kExact, ""), 1e-3) << "the two kinds must differ at long positions";
}

TEST(Yarn, EveryHeadSize) {
  const nlohmann::json golden = nlohmann::json::parse(read_file(kGolden + "yarn.json"));
  ASSERT_EQ(golden["table"].size(), 4u);
  for (const nlohmann::json& entry : golden["table"]) {
    const RopeShape shape = olmo3(entry["head_dim"].get<int64_t>());
    const YarnRamp ramp = yarn_ramp(shape.head_dim, shape.theta, *shape.yarn);
    EXPECT_EQ(ramp.low, entry["correction"][2].get<double>());
    EXPECT_EQ(ramp.high, entry["correction"][3].get<double>());
    EXPECT_EQ(shape.yarn->attention_factor, entry["attention_factor"][0].get<double>());
    const std::vector<double> exact = exact_rope_inverse_frequencies(shape);
    const std::vector<float> rounded = rope_inverse_frequencies(shape);
    ASSERT_EQ(exact.size(), entry["inv_yarn"].size());
    for (size_t i = 0; i < exact.size(); ++i) {
      EXPECT_NEAR(exact[i] / entry["inv_yarn"][i].get<double>(), 1.0, 1e-12) << shape.head_dim << " " << i;
      EXPECT_NEAR(double{rounded[i]} / entry["olmo_core_fp32"][i].get<double>(), 1.0, 2.1e-7) << shape.head_dim << " " << i;
      EXPECT_NEAR(double{rounded[i]} / entry["hf_fp32"][i].get<double>(), 1.0, 2.1e-7) << shape.head_dim << " " << i;
    }
    const size_t every = entry["tables_every"];
    for (const nlohmann::json& row : entry["tables"]) {
      for (size_t i = 0; i < row["cos"].size(); ++i) {
        const double angle = row["position"].get<double>() * exact[i * every], factor = shape.yarn->attention_factor;
        EXPECT_NEAR(cos(angle) * factor, row["cos"][i].get<double>(), 1e-9);
        EXPECT_NEAR(sin(angle) * factor, row["sin"][i].get<double>(), 1e-9);
      }
    }
  }
}

TEST(Yarn, RampEndsAtWholePairs) {  // ends that are not truncated move pair 19 by 0.41 percent: 0.65 rad at position 8191
  RopeShape shape = olmo3();
  EXPECT_NEAR(rope_inverse_frequencies(shape)[19], 0.01928275, 1e-8);
  EXPECT_EQ(yarn_ramp(128, 500000.0, *shape.yarn).low, 18);
  EXPECT_EQ(yarn_ramp(128, 500000.0, *shape.yarn).high, 35);
  shape.yarn->truncate = false;
  EXPECT_NEAR(rope_inverse_frequencies(shape)[19], 0.01936213, 1e-8);
  EXPECT_NEAR(yarn_ramp(128, 500000.0, *shape.yarn).low, 18.08, 0.005);
  EXPECT_NEAR(yarn_ramp(128, 500000.0, *shape.yarn).high, 34.98, 0.005);
  // transformers 4.57.3 honours it; pairs 20 and 26 of its float32 vector.
  EXPECT_EQ(rope_inverse_frequencies(shape)[20], 0.014915459789335728f);
  EXPECT_EQ(rope_inverse_frequencies(shape)[26], 0.0028556068427860737f);
}

TEST(Yarn, ScalesFrequenciesNotPositions) {  // positions that are divided and clamped stop telling tokens apart
  const RopeShape plain{.head_dim = 128}, stretched = olmo3();
  const std::vector<double> before = exact_rope_inverse_frequencies(plain), after = exact_rope_inverse_frequencies(stretched);
  for (size_t i = 0; i < 64; ++i) {
    if (i <= 18) {
      EXPECT_EQ(after[i], before[i]) << i;
    } else if (i >= 35) {
      EXPECT_EQ(after[i], before[i] / 8) << i;
    } else {
      EXPECT_TRUE(after[i] < before[i] && after[i] > before[i] / 8) << i;
    }
  }
  const RopeTable table = make_rope_table(stretched, 65536, RopeTableKind::kReference);
  for (const size_t position : {1u, 8191u, 8192u, 65535u})
    EXPECT_NE(std::memcmp(table.cos.data() + position * 64, table.cos.data() + (position - 1) * 64, 64 * sizeof(float)), 0) << position;
}

TEST(Yarn, AttentionFactorIsTheOneGiven) {
  RopeShape shape = olmo3();
  EXPECT_EQ(shape.yarn->attention_factor, 1.2079441541679836);
  EXPECT_EQ(make_rope_table(shape, 1, RopeTableKind::kReference).cos[0], 1.2079441541679836f);
  shape.yarn->attention_factor = 1.0;
  EXPECT_EQ(make_rope_table(shape, 1, RopeTableKind::kReference).cos[0], 1.0f);
  EXPECT_EQ(yarn_attention_factor(1), 1.0);
}

TEST(Yarn, ExtremeShapesGiveFiniteTables) {
  for (const double theta : {1.0000001, 2.0, 1e300}) {
    for (const YarnScaling& yarn : {YarnScaling{.factor = 1e6, .original_max_position_embeddings = 1},
                                    YarnScaling{.factor = 1, .original_max_position_embeddings = 1 << 30, .beta_fast = 1e6, .beta_slow = 1e-6},
                                    YarnScaling{.factor = 2, .beta_fast = 1, .beta_slow = 1, .truncate = false}}) {
      for (const float value : make_rope_table({.head_dim = 8, .theta = theta, .yarn = yarn}, 3, RopeTableKind::kReference).cos)
        EXPECT_TRUE(std::isfinite(value)) << theta;
      for (const float value : make_rope_table({.head_dim = 8, .theta = theta, .yarn = yarn}, 3, RopeTableKind::kExact).cos)
        EXPECT_TRUE(std::isfinite(value)) << theta;
    }
  }
}

}  // namespace
}  // namespace dz::numerics
