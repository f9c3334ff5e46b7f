// Scalar cross entropy and z-loss against OLMo-core's numbers, float64, and the widths and row counts of real vocabularies.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "checkpoint/safetensors.h"
#include "kernels/ref_support.h"

namespace dz::kernels::test {
namespace {

using numerics::to_float;

template <class T>
struct Loss {
  std::vector<T> dlogits;
  std::vector<float> ce, z;
};

template <class T>
Loss<T> run(const std::vector<float>& logits, const std::vector<int32_t>& targets, float weight, float z_loss, int threads = 1) {
  const auto rows = static_cast<int64_t>(targets.size());
  Loss<T> out{.dlogits = std::vector<T>(logits.size()), .ce = std::vector<float>(targets.size()), .z = std::vector<float>(targets.size())};
  activate(Isa::kScalar);
  ThreadPool pool(threads);
  std::vector<float> memory = logits;
  const CrossEntropy<T> args{.rows = rows,
                             .vocab = static_cast<int64_t>(logits.size()) / rows,
                             .logits = memory.data(),
                             .targets = targets.data(),
                             .weight = weight,
                             .z_loss = z_loss,
                             .gradient = true,
                             .ce = out.ce.data(),
                             .z = out.z.data()};
  cross_entropy(args, pool);
  for (int64_t row = 0; row < rows; ++row)
    std::memcpy(out.dlogits.data() + row * args.vocab, args.dlogits(row), static_cast<size_t>(args.vocab) * sizeof(T));
  return out;
}

struct Loss64 {
  std::vector<double> dlogits, ce, z;
};

Loss64 run64(const std::vector<float>& logits, const std::vector<int32_t>& targets, double weight, double z_loss) {
  const size_t vocab = logits.size() / targets.size();
  Loss64 out{.dlogits = std::vector<double>(logits.size(), 0.0), .ce = {}, .z = {}};
  for (size_t i = 0; i < targets.size(); ++i) {
    const float* row = logits.data() + i * vocab;
    double peak = -INFINITY, sum = 0;
    for (size_t j = 0; j < vocab; ++j) peak = std::max(peak, double{row[j]});
    for (size_t j = 0; j < vocab; ++j) sum += std::exp(row[j] - peak);
    const double lse = peak + std::log(sum);
    const bool masked = targets[i] == kMasked;
    out.ce.push_back(masked ? 0.0 : lse - row[targets[i]]);
    out.z.push_back(masked ? 0.0 : lse * lse);
    for (size_t j = 0; j < vocab && !masked; ++j) {
      const double p = std::exp(row[j] - lse);
      out.dlogits[i * vocab + j] = (p - (static_cast<int32_t>(j) == targets[i]) + 2 * z_loss * lse * p) * weight;
    }
  }
  return out;
}

template <class Value>
std::vector<Value> read_tensor(const checkpoint::TensorSource& source, const std::string& name) {
  const checkpoint::StoredTensor& tensor = source.at(name);
  std::vector<Value> values(static_cast<size_t>(tensor.elements()));
  source.read(tensor, std::as_writable_bytes(std::span(values)));
  return values;
}

double total(const std::vector<float>& values) {
  double sum = 0;
  for (const float v : values) sum += double{v};
  return sum;
}

TEST(RefLoss, MatchesOlmoCore) {
  const std::string folder = std::string(DZ_GOLDEN) + "/numerics/";
  const auto source = checkpoint::TensorSource::open(folder + "loss.safetensors");
  std::ifstream json(folder + "loss.json");
  const nlohmann::json sums = nlohmann::json::parse(json);
  const auto logits = read_tensor<float>(source, "logits");
  std::vector<int32_t> targets;
  for (const int64_t label : read_tensor<int64_t>(source, "labels")) targets.push_back(label < 0 ? kMasked : static_cast<int32_t>(label));
  const auto labels = static_cast<float>(std::count_if(targets.begin(), targets.end(), [](int32_t t) { return t != kMasked; }));
  ASSERT_EQ(labels, 20.0f);
  const struct {
    const char* name;
    double z_loss;
  } kMultipliers[] = {{"1e-05", 1e-5}, {"0.01", 1e-2}};
  for (const auto& multiplier : kMultipliers) {
    const auto z_loss = static_cast<float>(multiplier.z_loss);
    const Loss<float> summed = run<float>(logits, targets, 1.0f, z_loss), mean = run<float>(logits, targets, 1.0f / labels, z_loss);
    const nlohmann::json& expected = sums[std::string("sum z=") + multiplier.name];
    EXPECT_NEAR(total(summed.ce) / expected["ce_float64"]["value"].get<double>(), 1.0, 5e-7);
    EXPECT_NEAR(total(summed.z) * multiplier.z_loss / expected["z_float64"]["value"].get<double>(), 1.0, 5e-7);
    EXPECT_LE(relative_error(summed.dlogits, read_tensor<double>(source, std::string("dlogits_sum_") + multiplier.name)), 2e-6);
    EXPECT_LE(relative_error(mean.dlogits, read_tensor<double>(source, std::string("dlogits_mean_") + multiplier.name)), 2e-6);
  }
  const auto ce = read_tensor<float>(source, "ce_none");
  const Loss<float> rows = run<float>(logits, targets, 1.0f, 0.0f);
  for (size_t i = 0; i < ce.size(); ++i) EXPECT_NEAR(rows.ce[i], ce[i], 1e-6 * std::max(1.0f, std::fabs(ce[i]))) << i;
}

TEST(RefLoss, AFormWithoutTheZGradientIsNoticed) {
  const auto source = checkpoint::TensorSource::open(std::string(DZ_GOLDEN) + "/numerics/loss.safetensors");
  std::vector<int32_t> targets;
  for (const int64_t label : read_tensor<int64_t>(source, "labels")) targets.push_back(label < 0 ? kMasked : static_cast<int32_t>(label));
  const Loss<float> without = run<float>(read_tensor<float>(source, "logits"), targets, 1.0f, 0.0f);
  EXPECT_GE(relative_error(without.dlogits, read_tensor<double>(source, "dlogits_sum_1e-05")), 1e-4);
}

TEST(RefLoss, RealVocabulariesAgreeWithFloat64) {
  for (const int64_t vocab : {100278, 100352}) {
    Values values(3);
    const auto logits = values.make<float>(6 * vocab, 8.0f);
    std::vector<int32_t> targets = {0, kMasked, 5, static_cast<int32_t>(vocab - 1), 99999, 77};
    const Loss64 exact = run64(logits, targets, 0.2, 1e-5);
    const Loss<float> f32 = run<float>(logits, targets, 0.2f, 1e-5f, 2);
    EXPECT_LE(relative_error(f32.ce, exact.ce), 1e-6) << vocab;
    EXPECT_LE(relative_error(f32.z, exact.z), 1e-6) << vocab;
    EXPECT_LE(relative_error(f32.dlogits, exact.dlogits), 1e-5) << vocab;
    const Loss<bf16> rounded = run<bf16>(logits, targets, 0.2f, 1e-5f);
    EXPECT_TRUE(same_bits(rounded.ce, f32.ce));
    EXPECT_LE(relative_error(rounded.dlogits, exact.dlogits), 0x1p-8) << vocab;
  }
}

TEST(RefLoss, PaddedColumnsAtMinusInfinityHaveNoGradient) {
  std::vector<float> logits(100, 0.5f);
  for (size_t j = 90; j < 100; ++j) logits[j] = -INFINITY;
  const Loss<float> loss = run<float>(logits, {3}, 1.0f, 1e-5f);
  for (size_t j = 90; j < 100; ++j) EXPECT_EQ(bits(loss.dlogits[j]), 0u);
  EXPECT_NEAR(loss.ce[0], std::log(90.0), 1e-6);
}

TEST(RefLoss, AMaskedRowIsPlusZeroEvenWhenItsLogitsAreNotNumbers) {
  const std::vector<float> logits = {NAN, 1.0f, INFINITY, 2.0f};
  const Loss<float> loss = run<float>(logits, {kMasked}, 1.0f, 1e-5f);
  for (const float d : loss.dlogits) EXPECT_EQ(bits(d), 0u);
  EXPECT_EQ(bits(loss.ce[0]), 0u);
  EXPECT_EQ(bits(loss.z[0]), 0u);
  EXPECT_TRUE(std::isnan(run<float>(logits, {1}, 1.0f, 1e-5f).ce[0]));
}

TEST(RefLoss, ACertainTokenCostsNothing) {
  const Loss<float> loss = run<float>({-200.0f, 0.0f, -300.0f}, {1}, 1.0f, 0.0f);
  EXPECT_EQ(bits(loss.ce[0]), 0u);
  EXPECT_EQ(loss.dlogits[1], 0.0f);
}

}  // namespace
}  // namespace dz::kernels::test
