// Public bug reports about losses, scales and buffers, as small experiments on the whole model (rows are those of the list).
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/thread_pool.h"
#include "model/golden.h"
#include "model/synthetic.h"

namespace dz::model::test {
namespace {

constexpr int64_t kInstances = 3, kSeq = 40;

template <class T>
class LossCases : public ::testing::Test {
 protected:
  struct Result {
    LossOut loss;
    std::vector<float> gradients;
  };

  Transformer<T> transformer(int64_t chunk_rows = 0) {
    Transformer<T> model(config_, {.max_instances = kInstances, .seq = kSeq, .head_chunk_rows = chunk_rows}, pool_);
    model.set_weights(parameters_);
    return model;
  }
  Result run(Transformer<T>& model, float weight, float z_loss) {
    Result result;
    Parameters gradients(config_, Parameters::Role::kGradient);
    model.forward_backward(batch_.part(0, kInstances), weight, z_loss, whole_batch(kInstances, 1), gradients, result.loss);
    result.gradients.assign(gradients.arena().begin(), gradients.arena().end());
    return result;
  }
  Result run(float weight, float z_loss, int64_t chunk_rows = 0) {
    Transformer<T> model = transformer(chunk_rows);
    return run(model, weight, z_loss);
  }

  const ModelConfig config_ = awkward_config(false, true);
  Parameters parameters_ = lively_parameters(config_);
  SyntheticBatch batch_{kInstances, kSeq, config_.vocab_size};
  ThreadPool pool_{2};
};

using Types = ::testing::Types<bf16, float>;
TYPED_TEST_SUITE(LossCases, Types);

// Row 64: an outer scale reaches every gradient, with the head in chunks or whole. Twice the weight is exactly twice the gradient.
TYPED_TEST(LossCases, AnOuterScaleReachesEveryGradient) {
  const auto whole = this->run(0.25f, 1e-3f), doubled = this->run(0.5f, 1e-3f), chunked = this->run(0.5f, 1e-3f, 32);
  ASSERT_EQ(whole.gradients.size(), doubled.gradients.size());
  for (size_t i = 0; i < whole.gradients.size(); ++i) ASSERT_EQ(doubled.gradients[i], 2 * whole.gradients[i]) << i;
  EXPECT_EQ(std::memcmp(chunked.gradients.data(), doubled.gradients.data(), doubled.gradients.size() * sizeof(float)), 0);
  EXPECT_EQ(whole.loss.ce, doubled.loss.ce) << "the loss that is logged has no scale";
}

// Rows 55, 56: z-loss has a gradient, and is no part of the cross entropy.
TYPED_TEST(LossCases, CrossEntropyDoesNotHoldTheZLoss) {
  const auto without = this->run(0.25f, 0.0f), with = this->run(0.25f, 1.0f);
  EXPECT_EQ(without.loss.ce, with.loss.ce);
  EXPECT_EQ(without.loss.z, with.loss.z) << "before its multiplier";
  EXPECT_GT(with.loss.z[0], 0.0);
  EXPECT_NE(without.gradients, with.gradients);
}

// Rows 49, 54: ten tokens that cost 2 and two that cost 4 cost 28/12 a token, not 3, however the twelve are cut. A masked one counts nowhere.
TYPED_TEST(LossCases, TokensCountOnceWhateverTheirInstance) {
  auto model = this->transformer();
  for (size_t i = 0; i < this->batch_.targets.size(); ++i) {
    const size_t position = i % kSeq, instance = i / kSeq;
    if (position >= (instance == 0 ? 10u : instance == 1 ? 2u : 0u))
      this->batch_.targets[i] = -1;
    else
      this->batch_.targets[i] = static_cast<int32_t>(i) % 101;
  }
  const auto both = this->run(model, 1.0f / 12, 1e-3f);
  EXPECT_EQ(both.loss.labels, 12);
  EXPECT_EQ(both.loss.ce[2], 0.0);
  // The parts as micro-batches of one lane, in order: the same gradients to the bit.
  Parameters gradients(this->config_, Parameters::Role::kGradient);
  double ce = 0, z = 0;
  for (int64_t instance = 0; instance < kInstances; ++instance) {
    LaneGroup lane = whole_batch(kInstances, 1);
    lane.micro = {.instances = {instance, instance + 1}, .lanes = {0, 1}, .first_part = instance == 0, .last_part = instance + 1 == kInstances};
    LossOut loss;
    model.forward_backward(this->batch_.part(instance, instance + 1), 1.0f / 12, 1e-3f, lane, gradients, loss);
    ce += loss.ce[0];
    z += loss.z[0];
  }
  EXPECT_EQ(std::memcmp(gradients.arena().data(), both.gradients.data(), both.gradients.size() * sizeof(float)), 0);
  EXPECT_EQ(ce, both.loss.ce[0] + both.loss.ce[1]);
  EXPECT_EQ(z, both.loss.z[0] + both.loss.z[1]);
  // The mean of the two means is another number.
  EXPECT_GT(std::abs((both.loss.ce[0] / 10 + both.loss.ce[1] / 2) / 2 - ce / 12), 1e-3);
}

// Row 62: one instance that is no number makes the sum none, so the whole step is judged by it; what the others lost stays to be seen.
TYPED_TEST(LossCases, AnInstanceThatIsNoNumberIsNotAveragedAway) {
  int32_t only_in_1 = -1;
  for (int32_t token = 0; token < 101 && only_in_1 < 0; ++token) {
    int64_t seen[kInstances] = {};
    for (size_t i = 0; i < this->batch_.tokens.size(); ++i) seen[i / kSeq] += this->batch_.tokens[i] == token ? 1 : 0;
    if (seen[0] == 0 && seen[1] > 0 && seen[2] == 0) only_in_1 = token;
  }
  ASSERT_GE(only_in_1, 0);
  this->parameters_.tensor(this->parameters_.index_of("model.embed_tokens.weight"))[static_cast<size_t>(only_in_1 * 36)] = NAN;
  const auto result = this->run(0.25f, 1e-3f);
  EXPECT_TRUE(std::isfinite(result.loss.ce[0]));
  EXPECT_TRUE(std::isnan(result.loss.ce[1]));
  EXPECT_TRUE(std::isfinite(result.loss.ce[2]));
  size_t wrong = 0;
  for (const float gradient : result.gradients) wrong += std::isfinite(gradient) ? 0 : 1;
  EXPECT_GT(wrong, result.gradients.size() / 4);
}

// Rows 59, 75, 125, 130: a pass leaves nothing behind. Tables, the residual stream and the weights are what they were, so the same batch gives the
// same bits after an evaluation of other tokens, and the hundredth time.
TYPED_TEST(LossCases, APassLeavesNothingBehind) {
  auto model = this->transformer();
  const auto first = this->run(model, 0.25f, 1e-3f);
  const std::vector<float> weights(this->parameters_.arena().begin(), this->parameters_.arena().end());
  const SyntheticBatch other(kInstances, kSeq, 101, 77);
  LossOut loss;
  for (int time = 0; time < 10; ++time) {
    model.forward_loss(other.part(0, kInstances), loss);
    model.forward_logits(other.part(0, 1), [](int64_t, int64_t, const float*) {});
    const auto again = this->run(model, 0.25f, 1e-3f);
    ASSERT_EQ(std::memcmp(again.gradients.data(), first.gradients.data(), first.gradients.size() * sizeof(float)), 0) << time;
    ASSERT_EQ(again.loss.ce, first.loss.ce);
  }
  EXPECT_EQ(std::memcmp(weights.data(), this->parameters_.arena().data(), weights.size() * sizeof(float)), 0);
  std::vector<std::vector<TypeParam>> streams;
  for (int time = 0; time < 2; ++time) {
    std::vector<TypeParam> stream;
    model.forward_hidden(this->batch_.part(0, 1),
                         [&](int64_t, const TypeParam* hidden) { stream.insert(stream.end(), hidden, hidden + kSeq * this->config_.d_model); });
    streams.push_back(std::move(stream));
  }
  EXPECT_EQ(std::memcmp(streams[0].data(), streams[1].data(), streams[0].size() * sizeof(TypeParam)), 0);
}

}  // namespace
}  // namespace dz::model::test
