// Runs that start with moments and Adam's step of another, and what is no such file.
#include "train/init_moments.h"

#include "base/error.h"
#include "checkpoint/store.h"
#include "train/trajectory.h"

namespace dz::train::test {
namespace {

using Sets = std::vector<std::string>;

Sets from(const fs::path& checkpoint) {
  const std::string moments = (checkpoint / "moments.safetensors").string();
  return {"recipe.init=" + checkpoint.string(), "recipe.init_moments.exp_avg=" + moments, "recipe.init_moments.exp_avg_sq=" + moments,
          "recipe.optimizer.initial_step=3"};
}

// The moments of a checkpoint stand for both keys; a resume of that run does not read them again, and takes their digest over.
TEST(InitMoments, ComeFromACheckpointOfOurs) {
  TempDir temp;
  const fs::path config = write_trajectory_config(temp), old = temp / "old" / "checkpoints" / "step-3";
  train_trajectory(config, temp / "old", {"run.checkpoint_every=1"}, 4);
  Sets sets = from(old);
  sets.push_back("run.checkpoint_every=1");
  const std::vector<Json> lines = train_trajectory(config, temp / "new", sets, 2);
  EXPECT_EQ(lines[0].at("adam_step"), 4);
  const Json identity = Json::parse(read_file(temp / "new" / "checkpoints" / "step-1" / "identity.json")).at("fields");
  EXPECT_TRUE(identity.contains("recipe.init.digest") && identity.contains("recipe.init_moments.digest"));
  EXPECT_FALSE(identity.contains("recipe.init_moments.exp_avg"));
  fs::remove_all(temp / "old");
  EXPECT_EQ(train_trajectory(config, temp / "new", sets, 3).size(), 3u);
  sets.resize(1);  // the same weights without moments are another run
  EXPECT_THROW(load_config(config, {sets[0], "recipe.init_moments.exp_avg=x"}), ConfigError);
  try {
    train_trajectory(config, temp / "new", sets, 4);
    ADD_FAILURE();
  } catch (const ConfigError& error) {
    testing::internal::GetCapturedStdout();
    EXPECT_NE(std::string(error.what()).find("recipe.init_moments.digest"), std::string::npos) << error.what();
  }
}

// exp_avg files that are changed in one place; "" is the unchanged one.
std::string complaint(const std::function<void(std::vector<float>&, checkpoint::RawTensor&)>& change, bool left_over = false) {
  TempDir temp;
  Config config = load_config(write_trajectory_config(temp), {});
  ThreadPool pool(1);
  TrainState state(config.recipe);
  const model::Parameters zeros(config.recipe.model);
  std::vector<checkpoint::RawTensor> tensors;
  for (const TensorView& view : zeros.views()) tensors.push_back(checkpoint::raw(view));
  std::vector<float> values(static_cast<size_t>(element_count(tensors.back().shape)), 0.0f);
  checkpoint::RawTensor& last = tensors.back();  // model.norm.weight
  change(values, last);
  last.data = std::as_bytes(std::span(values)).first(last.data.size());
  if (left_over) tensors.push_back({"model.layers.9.mlp.up_proj.weight", "F32", {1}, std::as_bytes(std::span(values)).first(4)});
  const fs::path path = temp / "moments.safetensors";
  std::string bytes;
  checkpoint::write_safetensors(std::move(tensors), checkpoint::kTorchFormat,
                                [&](std::span<const std::byte> piece) { bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size()); });
  write_file_atomic(path, bytes);
  config.recipe.init_moments = {path.string(), path.string()};
  Progress progress(1, 1);
  testing::internal::CaptureStdout();
  std::string said;
  try {
    load_init_moments(config.recipe, state, pool, progress);
  } catch (const DataError& error) {
    said = error.what();
  }
  testing::internal::GetCapturedStdout();
  return said;
}

TEST(InitMoments, MustBeThoseOfTheModel) {
  EXPECT_EQ(complaint([](auto&, auto&) {}), "");
  EXPECT_NE(complaint([](auto&, auto& tensor) { tensor.name = "model.norm.wait"; }).find("model.norm.weight: found no such tensor"),
            std::string::npos);
  EXPECT_NE(complaint([](auto&, auto& tensor) { tensor.shape = {8, 8}; }).find("shape [8, 8]"), std::string::npos);
  EXPECT_NE(complaint([](auto& values, auto&) { values[3] = std::nanf(""); }).find("element 3: found nan, expected a finite number"),
            std::string::npos);
  EXPECT_NE(complaint([](auto& values, auto&) { values[5] = -1; }).find("element 5: found -1, expected 0 or more"), std::string::npos);
  EXPECT_NE(complaint([](auto&, auto&) {}, true).find("model.layers.9.mlp.up_proj.weight: found a tensor that this model does not have"),
            std::string::npos);
}

}  // namespace
}  // namespace dz::train::test
