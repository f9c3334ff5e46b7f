// recipe.loss.mask_padding against float64: the loss is the mean over the targets that are no padding, and the gradient is of that mean.
#include <cmath>

#include "base/error.h"
#include "checkpoint/store.h"
#include "model/load.h"
#include "model/reference_model.h"
#include "train/trajectory.h"

namespace dz::train::test {
namespace {

using Sets = std::vector<std::string>;

constexpr int32_t kPad = 511;  // the end of documents, so that the data has some

class MaskPadding : public testing::Test {
 protected:
  // One step of two instances without a clip; what it left of the first moments is 0.1 times the gradient.
  std::vector<Json> step(const std::string& name, const Sets& more) {
    Sets sets = recipe_;
    sets.insert(sets.end(), more.begin(), more.end());
    sets.push_back("run.checkpoint_every=1");
    return train_trajectory(config_, temp_ / name, sets, 1);
  }

  TempDir temp_;
  const fs::path config_ = write_trajectory_config(temp_);
  const Sets recipe_ = {"recipe.batch=2", "recipe.optimizer.max_grad_norm=0", fmt::format("recipe.data.tokens.pad_id={}", kPad),
                        "recipe.loss.z_loss=0.001"};
};

TEST_F(MaskPadding, LossAndGradientAreThoseOfFloat64) {
  Config config = load_config(config_, recipe_);
  ThreadPool pool(1);
  const TrainingData data = open_data(config.recipe, {}, pool);
  const data::Batch batch = data::make_batch(*data.dataset, *data.order, 1, false);
  const model::Parameters init = model::load_parameters(training_golden("init.safetensors"), config.recipe.model);
  model::test::ReferenceModel reference(config.recipe.model, init);
  int64_t pads = 0, labels = 0;
  for (const int32_t target : batch.targets) (target == kPad ? pads : labels) += target >= 0;
  ASSERT_GT(pads, 0);
  ASSERT_EQ(pads + labels, 2 * 63);

  // The mean over what is left; `masked` false: over all targets.
  const auto loss = [&](bool masked, double z_loss) {
    double sum = 0;
    for (int64_t i = 0; i < batch.instances; ++i) {
      const auto row = batch.tokens.begin() + i * batch.sequence_length;
      std::vector<int32_t> targets(batch.targets.begin() + i * batch.sequence_length, batch.targets.begin() + (i + 1) * batch.sequence_length);
      for (int32_t& target : targets) target = masked && target == kPad ? -1 : target;
      sum += model::test::reference_loss(reference.logits({row, row + batch.sequence_length}, {}), targets, z_loss);
    }
    return sum / static_cast<double>(masked ? labels : labels + pads);
  };

  const Json masked = step("masked", {"recipe.loss.mask_padding=true"})[0], plain = step("plain", {})[0];
  EXPECT_NEAR(masked["loss"].get<double>(), loss(true, 0), kLossLimit);
  EXPECT_NEAR(plain["loss"].get<double>(), loss(false, 0), kLossLimit);
  EXPECT_GT(std::fabs(loss(true, 0) - loss(false, 0)), 100 * kLossLimit) << "one rule for the other must be noticed";
  EXPECT_NEAR(masked["z_loss"].get<double>(), loss(true, 0.001) - loss(true, 0), 1e-7);
  EXPECT_EQ(masked["labels"], labels);

  // The head's row of the pad token has no target any more; its gradient is that of a token that never comes.
  const auto moments = checkpoint::TensorSource::open(temp_ / "masked" / "checkpoints" / "step-1" / "moments.safetensors");
  for (const auto& [name, element] : {std::pair<std::string, size_t>{"lm_head.weight", size_t{kPad} * 64 + 3},
                                      {"lm_head.weight", 16 * 64 + 5},
                                      {"model.layers.1.mlp.down_proj.weight", 77},
                                      {"model.norm.weight", 9}}) {
    const checkpoint::StoredTensor& stored = moments.at("exp_avg." + name);
    std::vector<float> values(static_cast<size_t>(stored.elements()));
    moments.read_f32(stored, values);
    double& weight = reference.weight(name, element);
    const double before = weight, h = 1e-4;
    weight = before + h;
    const double above = loss(true, 0.001), above_plain = loss(false, 0.001);
    weight = before - h;
    const double gradient = (above - loss(true, 0.001)) / (2 * h), plain_gradient = (above_plain - loss(false, 0.001)) / (2 * h);
    weight = before;
    const double tolerance = 2e-6 + 1e-4 * std::fabs(gradient);
    EXPECT_NEAR(double{values[element]} / 0.1, gradient, tolerance) << name;
    EXPECT_GT(std::fabs(gradient - plain_gradient), 2 * tolerance) << name << ": the other rule must be noticed";
  }
}

TEST_F(MaskPadding, NeedsAPadToken) {
  TempDir temp;
  try {
    train_contract(temp / "run", {"recipe.loss.mask_padding=true"}, 1);
    ADD_FAILURE();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("recipe.loss.mask_padding: found true, expected false for data without a pad token"), std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what()).find("recipe.data.tokens.pad_id"), std::string::npos);
  }
  EXPECT_THROW(load_config(contract_config(), {"recipe.loss.mask_padding=maybe"}), ConfigError);
}

}  // namespace
}  // namespace dz::train::test
