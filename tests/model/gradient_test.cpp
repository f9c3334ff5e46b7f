// Gradients with everything on at once (documents, windows, grouped heads, biases, tied head, z-loss) against central differences of the
// float64 model; the goldens cover each feature alone.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/thread_pool.h"
#include "model/golden.h"
#include "model/reference_model.h"
#include "model/synthetic.h"

namespace dz::model::test {
namespace {

constexpr float kZLoss = 1e-2f;

struct Case {
  bool tied, bias;
  const char* name;
};

constexpr Case kCases[] = {{false, false, "untied"}, {true, false, "tied"}, {false, true, "bias"}, {true, true, "tied_bias"}};

class Gradient : public ::testing::TestWithParam<Case> {};

double batch_loss(const ReferenceModel& model, const SyntheticBatch& batch) {
  double loss = 0;
  for (int64_t i = 0; i < batch.instances; ++i) {
    const auto of = [&](const std::vector<int32_t>& all) {
      return std::vector<int32_t>(all.begin() + i * batch.seq, all.begin() + (i + 1) * batch.seq);
    };
    loss += reference_loss(model.logits(of(batch.tokens), of(batch.first_visible)), of(batch.targets), double{kZLoss});
  }
  return loss / static_cast<double>(batch.labels());
}

double central_difference(ReferenceModel& model, const SyntheticBatch& batch, const std::string& name, size_t element) {
  constexpr double kStep = 1e-4;
  double& weight = model.weight(name, element);
  const double kept = weight;
  weight = kept + kStep;
  const double above = batch_loss(model, batch);
  weight = kept - kStep;
  const double below = batch_loss(model, batch);
  weight = kept;
  return (above - below) / (2 * kStep);
}

TEST_P(Gradient, EqualsCentralDifferences) {
  const ModelConfig config = awkward_config(GetParam().tied, GetParam().bias);
  const Parameters parameters = lively_parameters(config);
  const SyntheticBatch batch(3, 37, config.vocab_size);
  ThreadPool pool(2);
  Transformer<float> transformer(config, {.max_instances = 3, .seq = 37}, pool);
  transformer.set_weights(parameters);
  Parameters gradients(config, Parameters::Role::kGradient);
  LossOut loss;
  transformer.forward_backward(batch.part(0, 3), 1.0f / static_cast<float>(batch.labels()), kZLoss, whole_batch(3, 2), gradients, loss);
  finish_tied_gradient(gradients, pool);

  ReferenceModel reference(config, parameters);
  for (size_t i = 0; i < gradients.size(); ++i) {
    const std::string& name = gradients.specs()[i].name;
    const auto ours = gradients.tensor(i);
    const auto most = std::max_element(ours.begin(), ours.end(), [](float a, float b) { return std::abs(a) < std::abs(b); });
    const double tolerance = 3e-5 * std::abs(double{*most});
    EXPECT_GT(tolerance, 0.0) << name;
    for (const size_t element : {static_cast<size_t>(most - ours.begin()), ours.size() / 2, ours.size() - 1}) {
      EXPECT_NEAR(double{ours[element]}, central_difference(reference, batch, name, element), tolerance) << name << " element " << element;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Model, Gradient, ::testing::ValuesIn(kCases), [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace dz::model::test
