// fp32 against the reference systems: logits, hidden states, loss and every gradient of every variant; then the mistakes that must not pass.
#include "model/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/thread_pool.h"
#include "model/reference_model.h"

namespace dz::model::test {
namespace {

constexpr double kLogits = 6e-5;    // about four times the distance of two correct float32 programs (README.md of the goldens)
constexpr double kGradient = 2e-5;  // of a tensor's largest gradient

nlohmann::json report_of(const std::string& variant) { return nlohmann::json::parse(read_file(golden(variant + "/report.json"))); }

class Variant : public ::testing::TestWithParam<const char*> {
 protected:
  Variant() : name_(GetParam()), model_(load_model(golden(name_))), expected_(name_ + "/expected.safetensors"), pool_(2) {}

  template <class T>
  Transformer<T> transformer(int64_t seq) {
    Transformer<T> transformer(model_.config, {.max_instances = 2, .seq = seq}, pool_);
    transformer.set_weights(model_.parameters);
    return transformer;
  }
  std::vector<float> logits(int64_t seq) {
    const std::vector<int32_t> tokens = expected_.tokens("T" + std::to_string(seq) + ".input_ids");
    Transformer<float> model = transformer<float>(seq);
    return logits_of(model, {.instances = 2, .seq = seq, .tokens = tokens.data()}, model_.config.vocab_size);
  }

  std::string name_;
  LoadedModel model_;
  GoldenFile expected_;
  ThreadPool pool_;
};

TEST_P(Variant, Logits) {
  for (const int64_t seq : {1, 9, 48, 96}) {
    const std::string prefix = "T" + std::to_string(seq) + ".";
    const std::vector<float> ours = logits(seq);
    EXPECT_LE(max_difference(ours, expected_.numbers(prefix + "logits")), kLogits) << "T" << seq;
    std::vector<int32_t> top;
    const int64_t vocab = model_.config.vocab_size;
    for (auto row = ours.begin(); row != ours.end(); row += vocab) top.push_back(static_cast<int32_t>(std::max_element(row, row + vocab) - row));
    EXPECT_EQ(top, expected_.tokens(prefix + "top1")) << "T" << seq;
  }
}

TEST_P(Variant, HiddenStates) {
  const std::vector<int32_t> tokens = expected_.tokens("T48.input_ids");
  const int64_t last = model_.config.n_layers + 1;
  int64_t seen = 0;
  transformer<float>(48).forward_hidden({.instances = 2, .seq = 48, .tokens = tokens.data()}, [&](int64_t index, const float* hidden) {
    const std::vector<double> wanted = expected_.numbers("T48.hidden." + (index == last ? "norm" : std::to_string(index)));
    EXPECT_LE(max_difference(std::span(hidden, 96 * static_cast<size_t>(model_.config.d_model)), wanted), kLogits) << index;
    ++seen;
  });
  EXPECT_EQ(seen, last + 1);
}

TEST_P(Variant, LossAndGradients) {
  const std::vector<int32_t> tokens = expected_.tokens("T48.input_ids"), targets = shifted(tokens, 48);
  Transformer<float> model = transformer<float>(48);
  Parameters gradients(model_.config, Parameters::Role::kGradient);
  LossOut loss;
  model.forward_backward({.instances = 2, .seq = 48, .tokens = tokens.data(), .targets = targets.data()}, 1.0f / 94.0f, 0.0f, whole_batch(2, 1),
                         gradients, loss);
  finish_tied_gradient(gradients, pool_);
  EXPECT_EQ(loss.labels, 94);
  const double wanted = report_of(name_)["lengths"]["48"]["ce_float64"]["value"];
  EXPECT_NEAR((loss.ce[0] + loss.ce[1]) / 94.0, wanted, 5e-6);

  const GoldenFile golden_gradients(name_ + "/grads.safetensors");
  EXPECT_EQ(golden_gradients.tensors().size(), gradients.size());
  for (size_t i = 0; i < gradients.size(); ++i) {
    const std::string& tensor = gradients.specs()[i].name;
    const std::vector<double> reference = golden_gradients.numbers(tensor);
    EXPECT_LE(max_difference(gradients.tensor(i), reference), kGradient * largest(reference)) << tensor;
  }
}

struct NamedFault {
  Fault fault;
  const char* name;  // in report.json
};

constexpr NamedFault kFaults[] = {
    {Fault::kNoWindow, "no sliding window"},
    {Fault::kWindowPlusOne, "window + 1"},
    {Fault::kWindowMinusOne, "window - 1"},
    {Fault::kShiftedPattern, "layer pattern shifted by one"},
    {Fault::kNormPerHead, "qk norm per head"},
    {Fault::kGateUpSwapped, "gate and up swapped"},
    {Fault::kInterleavedRope, "interleaved rope"},
    {Fault::kPreNorm, "norm before the sublayer"},
    {Fault::kInterleavedHeads, "gqa heads interleaved"},
    {Fault::kYarnOnAllLayers, "yarn on all layers"},
    {Fault::kNoAttentionFactor, "no attention factor"},
    {Fault::kAttentionFactorSquared, "attention factor squared"},
};

std::vector<double> reference_logits(const ReferenceModel& model, const std::vector<int32_t>& tokens, size_t seq) {
  std::vector<double> all;
  for (size_t begin = 0; begin < tokens.size(); begin += seq) {
    const std::vector<double> one = model.logits({tokens.begin() + static_cast<int64_t>(begin), tokens.begin() + static_cast<int64_t>(begin + seq)});
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

// The float64 model agrees with the goldens, and with each mistake it moves by what the reference's own float64 model moved: so a program
// with that mistake would fail the test of the logits.
TEST_P(Variant, MistakesAreCaught) {
  const std::vector<int32_t> tokens = expected_.tokens("T96.input_ids");
  const std::vector<double> wanted = expected_.numbers("T96.logits");
  const std::vector<float> ours = logits(96);
  const std::vector<double> right = reference_logits(ReferenceModel(model_.config, model_.parameters), tokens, 96);
  EXPECT_LE(max_difference(ours, right), kLogits);
  EXPECT_LE(max_difference(right, wanted), kLogits);
  const nlohmann::json faults = report_of(name_)["faults"];
  EXPECT_GE(faults.size(), 4u);
  size_t caught = 0;
  for (const NamedFault& fault : kFaults) {
    if (!faults.contains(fault.name)) continue;
    const std::vector<double> wrong = reference_logits(ReferenceModel(model_.config, model_.parameters, fault.fault), tokens, 96);
    EXPECT_NEAR(max_difference(wrong, right), double{faults[fault.name]["max_abs_logit_change"]}, 1e-5) << fault.name;
    EXPECT_GT(max_difference(wrong, wanted), 1000 * kLogits) << fault.name;
    ++caught;
  }
  EXPECT_EQ(caught, faults.size());
}

TEST(YarnLayers, AllIsAnotherModel) {
  LoadedModel model = load_model(golden("yarn"));
  const GoldenFile expected("yarn/expected.safetensors");
  const std::vector<int32_t> tokens = expected.tokens("T48.input_ids");
  const Batch batch{.instances = 2, .seq = 48, .tokens = tokens.data()};
  ThreadPool pool(2);
  const auto logits = [&] {
    Transformer<float> transformer(model.config, {.max_instances = 2, .seq = 48, .backward = false}, pool);
    transformer.set_weights(model.parameters);
    return logits_of(transformer, batch, model.config.vocab_size);
  };
  const std::vector<float> full = logits();
  model.config.yarn_layers = YarnLayers::kAll;
  const std::vector<float> all = logits();
  EXPECT_LE(max_difference(full, expected.numbers("T48.logits")), kLogits);
  EXPECT_LE(max_difference(all, expected.numbers("T48.logits_yarn_all_layers")), kLogits);
  EXPECT_NEAR(max_difference(full, expected.numbers("T48.logits_yarn_all_layers")), 7.46, 0.01);
}

INSTANTIATE_TEST_SUITE_P(Goldens, Variant, ::testing::ValuesIn(kVariants), [](const auto& variant) { return std::string(variant.param); });

TEST(OlmoCore, PackedDocuments) {
  const LoadedModel model = load_model(golden("base"));
  const GoldenFile packed("olmo_core/packed_documents.safetensors");
  const std::vector<int32_t> tokens = packed.tokens("input_ids"), lengths = packed.tokens("doc_lens");
  const std::vector<double> wanted = packed.numbers("logits");
  std::vector<int32_t> first_visible;
  for (const int32_t length : lengths)
    first_visible.insert(first_visible.end(), static_cast<size_t>(length), static_cast<int32_t>(first_visible.size()));
  ASSERT_EQ(first_visible.size(), 48u);
  ThreadPool pool(2);
  Transformer<float> transformer(model.config, {.seq = 48, .backward = false}, pool);
  transformer.set_weights(model.parameters);
  Batch batch{.instances = 1, .seq = 48, .tokens = tokens.data(), .first_visible = first_visible.data()};
  EXPECT_LE(max_difference(logits_of(transformer, batch, 512), wanted), kLogits);
  batch.first_visible = nullptr;
  EXPECT_GT(max_difference(logits_of(transformer, batch, 512), wanted), 1.0) << "without the mask";
}

TEST(OlmoCore, TrainingLossWithZLossAndMaskedLabels) {
  const LoadedModel model = load_model(golden("olmo2"));
  const GoldenFile file("olmo_core/olmo2_train_loss.safetensors");
  const nlohmann::json report = report_of("olmo_core")["train_loss"];
  const std::vector<int32_t> tokens = file.tokens("input_ids");
  std::vector<int32_t> targets = file.tokens("labels");
  for (int32_t& target : targets) target = target < 0 ? -1 : target;
  const double labels = report["n_labels"], z_loss = report["z_loss_multiplier"];
  ThreadPool pool(2);
  Transformer<float> transformer(model.config, {.max_instances = 2, .seq = 48}, pool);
  transformer.set_weights(model.parameters);
  Parameters gradients(model.config, Parameters::Role::kGradient);
  LossOut loss;
  transformer.forward_backward({.instances = 2, .seq = 48, .tokens = tokens.data(), .targets = targets.data()}, static_cast<float>(1.0 / labels),
                               static_cast<float>(z_loss), whole_batch(2, 2), gradients, loss);
  EXPECT_EQ(loss.labels, static_cast<int64_t>(labels));
  EXPECT_NEAR((loss.ce[0] + loss.ce[1]) / labels, double{report["ce_float64"]["value"]}, 1e-6 * 8.05);
  EXPECT_NEAR((loss.z[0] + loss.z[1]) / labels * z_loss, double{report["z_float64"]["value"]}, 1e-6 * 0.06);
  for (size_t i = 0; i < gradients.size(); ++i) {
    const std::string& name = gradients.specs()[i].name;
    const std::vector<double> wanted = file.numbers("grad." + name);
    EXPECT_LE(max_difference(gradients.tensor(i), wanted), kGradient * largest(wanted)) << name;
  }
}

}  // namespace
}  // namespace dz::model::test
