// Against what torch 2.15.0 drew on a CPU (tests/golden/init).
#include "numerics/torch_random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "numerics/functions64.h"

namespace dz::numerics {
namespace {

using Json = nlohmann::json;

Json golden(const std::string& name) { return Json::parse(std::ifstream(std::string(DZ_GOLDEN "/init/") + name)); }

template <class T>
T hex(const Json& text) {
  return static_cast<T>(std::strtod(text.get_ref<const std::string&>().c_str(), nullptr));
}

template <class T>
std::string sha256_of(const std::vector<T>& values) {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(values)));
  return hash.hex();
}

// -1.0f and 1.0f are far apart here, and +0 and -0 are not.
template <class T>
int64_t ulps_apart(T a, T b) {
  const auto place = [](T x) {
    using Bits = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
    const auto bits = std::bit_cast<Bits>(x);
    return static_cast<int64_t>(bits < 0 ? std::numeric_limits<Bits>::min() - bits : bits);
  };
  return std::abs(place(a) - place(b));
}

template <class T>
std::vector<T> draw(const std::string& op, uint64_t seed, size_t count) {
  TorchStream stream(seed);
  std::vector<T> out(count);
  if (op == "uniform_0_1") {
    stream.uniform(out, 0, 1);
  } else if (op == "uniform_-0.3_0.7") {
    stream.uniform(out, -0.3, 0.7);
  } else if (op == "randn") {
    stream.normal(out, 0, 1);
  } else if (op == "normal_0.5_0.02") {
    stream.normal(out, 0.5, 0.02);
  } else if constexpr (std::is_same_v<T, float>) {
    stream.truncated_normal(out, 0.02, op.ends_with("erfinv") ? TorchCut::kErfinv : TorchCut::kRejection);
  }
  return out;
}

TEST(TorchRandom, PrimitivesAreBitForBit) {
  int rows = 0;
  const Json file = golden("primitives.json");
  for (const Json& row : file["rows"]) {
    const std::string op = row["op"];
    if (row["dtype"] != "float32" || op.ends_with("erfinv")) continue;
    const size_t count = row["n"];
    const std::vector<float> values = draw<float>(op, row["seed"], count);
    EXPECT_EQ(sha256_of(values), row["sha256"]) << op << " of " << count << " from seed " << row["seed"] << ": " << values[0] << ", torch "
                                                << hex<float>(row["first"][0]);
    ++rows;
  }
  EXPECT_EQ(rows, 5 * 4 * 6);
}

TEST(TorchRandom, DoublesAreWithinAnUlp) {
  int rows = 0;
  const Json file = golden("primitives.json");
  for (const Json& row : file["rows"]) {
    if (row["dtype"] != "float64") continue;
    const std::vector<double> values = draw<double>(row["op"], row["seed"], row["n"]);
    const size_t shown = row["first"].size();
    const bool exact = row["op"].get<std::string>().starts_with("uniform");
    for (size_t i = 0; i < shown; ++i) {
      EXPECT_LE(ulps_apart(values[i], hex<double>(row["first"][i])), exact ? 0 : 1) << row["op"] << " " << row["n"];
      EXPECT_LE(ulps_apart(values[values.size() - shown + i], hex<double>(row["last"][i])), exact ? 0 : 1) << row["op"] << " " << row["n"];
    }
    if (exact) {
      EXPECT_EQ(sha256_of(values), row["sha256"]);
    }
    ++rows;
  }
  EXPECT_EQ(rows, 4 * 4 * 5);
}

// MKL's erfinv, which torch used, is not correctly rounded: 2 ulp, in at most 0.1 % of the values.
TEST(TorchRandom, CutByErfinvIsWithinTwoUlp) {
  int64_t compared = 0, different = 0, most = 0;
  const Json file = golden("primitives.json");
  for (const Json& row : file["rows"]) {
    if (!row["op"].get<std::string>().ends_with("erfinv")) continue;
    const std::vector<float> values = draw<float>(row["op"], row["seed"], row["n"]);
    const size_t shown = row["first"].size();
    for (size_t i = 0; i < 2 * shown; ++i) {
      const bool last = i >= shown;
      const float ours = last ? values[values.size() - 2 * shown + i] : values[i],
                  theirs = hex<float>(last ? row["last"][i - shown] : row["first"][i]);
      const int64_t apart = ulps_apart(ours, theirs);
      most = std::max(most, apart);
      different += apart != 0;
      ++compared;
    }
  }
  EXPECT_GE(compared, 300);
  EXPECT_LE(most, 2);
  EXPECT_LE(different, 1);  // of so few
}

// The spare half of a pair outlives long normals, uniforms and other types; each call takes as many numbers as torch's.
TEST(TorchRandom, SeveralCallsOnOneGenerator) {
  const Json sequences = golden("sequences.json");
  int calls = 0;
  for (const Json& row : sequences["rows"]) {
    TorchStream stream(row["seed"]);
    for (size_t c = 0; c < row["calls"].size(); ++c) {
      const Json& call = row["calls"][c];
      const std::string text = call.is_string() ? call.get<std::string>() : "";
      const size_t count = text.empty() ? call.get<size_t>() : std::stoul(text.substr(1));
      const Json& expected = row["first_16_of_each"][c];
      if (text.starts_with("d")) {
        std::vector<double> out(count);
        stream.normal(out, 0, 1);
        for (size_t i = 0; i < expected.size(); ++i) EXPECT_LE(ulps_apart(out[i], hex<double>(expected[i])), 1) << row["calls"] << c;
      } else {
        std::vector<float> out(count);
        if (text.starts_with("u"))
          stream.uniform(out, 0, 1);
        else
          stream.normal(out, 0, 1);
        for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(out[i], hex<float>(expected[i])) << row["calls"] << c << " " << i;
      }
      ++calls;
    }
  }
  EXPECT_GE(calls, 30);
}

TEST(TorchRandom, SeedsAgreeInTheirLowHalf) {
  EXPECT_EQ(draw<float>("randn", 3, 100), draw<float>("randn", (uint64_t{1} << 40) + 3, 100));
  EXPECT_NE(draw<float>("randn", 3, 100), draw<float>("randn", 4, 100));
}

TEST(TorchRandom, SkippingIsDrawing) {
  for (const int64_t count : {0, 1, 623, 624, 625, 5000}) {
    Mt19937 drawn(7u), skipped(7u);
    for (int64_t i = 0; i < count; ++i) drawn.next();
    skipped.skip(count);
    EXPECT_EQ(drawn.next(), skipped.next()) << count;
  }
}

TEST(InverseErf, AgainstTheFunctionThatItInverts) {
  for (const double y : {1e-300, 1e-9, 1e-3, 0.1, 0.5, 0.8499, 0.8501, 0.9, 0.99, 0.9973, 0.999999, 1 - 1e-12}) {
    const auto x = static_cast<long double>(inverse_erf(y));
    const long double slope = 2 / std::sqrt(3.14159265358979323846L) * std::exp(-x * x);
    // Where erf is flat, the distance to 1 is what a double keeps of it.
    const long double error =
        y < 0.5 ? (std::erf(x) - static_cast<long double>(y)) / slope : ((1 - static_cast<long double>(y)) - std::erfc(x)) / slope;
    EXPECT_LE(std::abs(error / x), 4e-15L) << y;
    EXPECT_EQ(inverse_erf(-y), -inverse_erf(y));
  }
  EXPECT_EQ(inverse_erf(0.0), 0.0);
  EXPECT_EQ(inverse_erf(1.0), HUGE_VAL);
  EXPECT_EQ(inverse_erf(-1.0), -HUGE_VAL);
  EXPECT_TRUE(std::isnan(inverse_erf(1.0000001)));
}

}  // namespace
}  // namespace dz::numerics
