// Loading: exactly the tensors of the model, or an error that names the one that is wrong.
#include "model/load.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/thread_pool.h"
#include "checkpoint/store.h"
#include "model/golden.h"
#include "model/init.h"
#include "model/synthetic.h"

namespace dz::model::test {
namespace {

class Loading : public ::testing::Test {
 protected:
  Loading() {
    std::string name = (fs::temp_directory_path() / "dz-model-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
    write_file_atomic(directory_ / "config.json", to_hf_json(config_));
  }
  ~Loading() override { fs::remove_all(directory_); }

  void write(const std::vector<TensorView>& tensors) {
    std::string bytes;
    checkpoint::write_safetensors(tensors, checkpoint::kTorchFormat,
                                  [&](std::span<const std::byte> piece) { bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size()); });
    write_file_atomic(directory_ / "model.safetensors", bytes);
  }
  std::string error() const {
    try {
      load_model(directory_);
    } catch (const DataError& error) {
      return error.what();
    }
    return "no error";
  }

  const ModelConfig config_ = awkward_config(true, true);
  const Parameters parameters_ = lively_parameters(config_);
  fs::path directory_;
};

TEST_F(Loading, GivesTheBitsThatWereWritten) {
  write(parameters_.views());
  const LoadedModel model = load_model(directory_);
  EXPECT_EQ(model.config, config_);
  const auto ours = model.parameters.arena(), wanted = parameters_.arena();
  ASSERT_EQ(ours.size(), wanted.size());
  EXPECT_EQ(std::memcmp(ours.data(), wanted.data(), wanted.size_bytes()), 0);
}

TEST_F(Loading, NamesTheTensorThatIsWrong) {
  std::vector<TensorView> tensors = parameters_.views();
  const std::string name = tensors[4].name;
  tensors.erase(tensors.begin() + 4);
  write(tensors);
  EXPECT_NE(error().find(name + ": found no such tensor"), std::string::npos) << error();

  tensors = parameters_.views();
  tensors.push_back({"model.extra.weight", DType::kF32, {1}, parameters_.arena().data()});
  write(tensors);
  EXPECT_NE(error().find("model.extra.weight"), std::string::npos) << error();

  tensors = parameters_.views();
  std::swap(tensors[0].shape[0], tensors[0].shape[1]);
  write(tensors);
  EXPECT_NE(error().find(tensors[0].name + ": found shape [36, 101], expected [101, 36]"), std::string::npos) << error();

  tensors = parameters_.views();
  tensors[1].dtype = DType::kI32;
  write(tensors);
  EXPECT_NE(error().find("I32"), std::string::npos) << error();
}

// A small file beside a config that claims a terabyte: refused for the shape, before memory is asked for.
TEST_F(Loading, AllocatesNothingThatTheFileDoesNotHold) {
  write(parameters_.views());
  ModelConfig huge = config_;
  huge.vocab_size = huge.d_ff = int64_t{1} << 30;
  write_file_atomic(directory_ / "config.json", to_hf_json(huge));
  EXPECT_NE(error().find("expected ["), std::string::npos) << error();
}

TEST_F(Loading, SaysWhatIsNotThere) {
  EXPECT_THROW(load_model(directory_), Error);  // no weights
  EXPECT_THROW(load_model(directory_ / "nowhere"), InputError);
  fs::remove(directory_ / "config.json");
  EXPECT_THROW(load_model(directory_), InputError);
}

TEST_F(Loading, ACheckpointAndTheNewestOfARun) {
  ThreadPool pool(1);
  const fs::path run = directory_ / "run", checkpoints = run / "checkpoints";
  Parameters moments = parameters_;
  for (const int64_t step : {10, 20}) {
    Parameters now = lively_parameters(config_, static_cast<uint64_t>(step));
    checkpoint::Snapshot snapshot{.step = step,
                                  .parameters = now.views(),
                                  .moments = {},
                                  .trainer_json = "{}",
                                  .side_files = {{"config.json", to_hf_json(config_)}},
                                  .digests = {}};
    for (const char* prefix : {"exp_avg.", "exp_avg_sq."}) {
      for (const TensorView& view : moments.views(prefix)) snapshot.moments.push_back(view);
    }
    checkpoint::save(checkpoints, snapshot, 0, pool);
  }
  const auto holds = [&](const fs::path& path, uint64_t seed) {
    const Parameters wanted = lively_parameters(config_, seed);
    return std::ranges::equal(load_model(path).parameters.arena(), wanted.arena());
  };
  EXPECT_TRUE(holds(checkpoints / "step-10", 10));
  EXPECT_TRUE(holds(run, 20));
  EXPECT_EQ(load_model(run).directory, checkpoints / "step-20");
  const std::string weights = read_file(checkpoints / "step-10" / "model.safetensors");
  std::string flipped = weights;
  flipped.back() = static_cast<char>(flipped.back() ^ 1);
  write_file_atomic(checkpoints / "step-10" / "model.safetensors", flipped);
  EXPECT_THROW(load_model(checkpoints / "step-10"), CheckpointError) << "a flipped bit";
  write_file_atomic(checkpoints / "step-10" / "model.safetensors", weights);
  fs::remove(checkpoints / "step-20" / "manifest.json");
  EXPECT_THROW(load_model(checkpoints / "step-20"), CheckpointError) << "an interrupted save";
  EXPECT_TRUE(holds(run, 10)) << "an incomplete checkpoint is never picked";
  fs::remove(checkpoints / "step-10" / "manifest.json");
  EXPECT_THROW(load_model(run), InputError);
}

TEST(Init, DependsOnSeedAndNameOnly) {
  const ModelConfig config = awkward_config(false, true);
  ModelConfig deeper = config;
  deeper.n_layers = 5;
  deeper.set_window_pattern(3);
  Parameters one(config), again(config), other_seed(config), more(deeper);
  ThreadPool pool(1), three(3);
  init_parameters(1, one, pool);
  init_parameters(1, again, three);
  init_parameters(2, other_seed, pool);
  init_parameters(1, more, pool);
  EXPECT_TRUE(std::ranges::equal(one.arena(), again.arena()));
  for (size_t i = 0; i < one.size(); ++i) {
    const ParameterSpec& spec = one.specs()[i];
    EXPECT_TRUE(std::ranges::equal(one.tensor(i), more.tensor(more.index_of(spec.name)))) << spec.name;
    const bool drawn = spec.kind == ParameterKind::kMatrix || spec.kind == ParameterKind::kEmbedding;
    EXPECT_EQ(std::ranges::equal(one.tensor(i), other_seed.tensor(i)), !drawn) << spec.name;
    double squares = 0;
    for (const float value : one.tensor(i)) {
      EXPECT_LE(std::abs(value), drawn ? 0.06f : 1.0f);
      squares += double{value} * double{value};
    }
    const double rms = std::sqrt(squares / static_cast<double>(one.tensor(i).size()));
    const double wanted = drawn ? 0.02 * 0.9867 : spec.kind == ParameterKind::kNorm ? 1.0 : 0.0;  // the cut at three removes 1.3% of the deviation
    EXPECT_NEAR(rms, wanted, drawn ? 0.0015 : 0.0) << spec.name;
  }
}

TEST(Transformer, RefusesTokensBeyondTheVocabulary) {
  const ModelConfig config = awkward_config(false, false);
  const Parameters parameters = lively_parameters(config);
  ThreadPool pool(1);
  Transformer<float> model(config, {.seq = 4, .backward = false}, pool);
  model.set_weights(parameters);
  std::vector<int32_t> tokens = {1, 2, 101, 3}, targets = {1, 2, 3, -1};
  LossOut loss;
  EXPECT_THROW(model.forward_loss({.instances = 1, .seq = 4, .tokens = tokens.data(), .targets = targets.data()}, loss), DataError);
  tokens[2] = 100;
  model.forward_loss({.instances = 1, .seq = 4, .tokens = tokens.data(), .targets = targets.data()}, loss);
  EXPECT_EQ(loss.labels, 3);
  targets[0] = 101;
  EXPECT_THROW(model.forward_loss({.instances = 1, .seq = 4, .tokens = tokens.data(), .targets = targets.data()}, loss), DataError);
}

// Memory is bounded by the chunk of logits, not by the batch: doubling the instances adds no logits.
TEST(Transformer, NeverHoldsTheLogitsOfABatch) {
  ModelConfig config = awkward_config(false, false);
  config.vocab_size = 50000;
  ThreadPool pool(1);
  const auto bytes = [&](int64_t instances, Remat remat) {
    return Transformer<bf16>(config, {.max_instances = instances, .seq = 512, .head_chunk_rows = 32, .remat = remat}, pool).activation_bytes();
  };
  const int64_t one = bytes(1, Remat::kNone), two = bytes(2, Remat::kNone);
  EXPECT_LT(two - one, 512 * 50000);
  EXPECT_GT(one, 32 * 50000 * 4);
  EXPECT_LT(bytes(2, Remat::kFull), two);
}

}  // namespace
}  // namespace dz::model::test
