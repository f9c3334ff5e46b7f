#include "train/init.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/thread_pool.h"
#include "train/config.h"

namespace dz::train {
namespace {

using Json = nlohmann::json;

// The shape of the trajectories that OLMo-core made.
Config parse(const std::string& init) {
  return parse_config(
      "recipe:\n  seed: 0\n  steps: 60\n  batch: 8\n"
      "  data: {source: generated, sequence_length: 64, generated: {tokens: 1000, documents: 10}}\n"
      "  model: {d_model: 64, n_layers: 4, n_heads: 4, d_ff: 192, vocab_size: 512, window: 16}\n"
      "  optimizer: {lr: 0.001}\n" +
          init + "run: {dir: runs/a}\n",
      "a.yaml", "/base", {});
}

std::string message(const std::string& init) {
  try {
    parse(init);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

// How many of the reference's initial tensors a fresh run of this recipe has, bit for bit.
int64_t equal_tensors(const std::string& init, const Json& rows) {
  const Config config = parse(init);
  TrainState state(config.recipe);
  ThreadPool pool(1);
  Progress progress(1, 1);
  EXPECT_EQ(init_weights(config.recipe, state, pool, progress), "");
  int64_t equal = 0;
  for (const Json& row : rows) {
    Sha256 hash;
    hash.update(std::as_bytes(state.parameters.tensor(state.parameters.index_of(row["tensor"].get<std::string>()))));
    equal += hash.hex() == row["sha256"];
  }
  return equal;
}

TEST(RecipeInit, TorchIsWhereOlmoCoresTrajectoriesBegin) {
  const Json file = Json::parse(std::ifstream(DZ_GOLDEN "/init/training_init.json"));
  const Json& rows = file["rows"];
  ASSERT_EQ(rows.size(), 30u);
  EXPECT_EQ(equal_tensors("  init: torch\n", rows), 30);
  EXPECT_EQ(equal_tensors("  init: normal\n  init_stream: torch\n  init_seed: 0\n", rows), 30);
  EXPECT_EQ(equal_tensors("  init: torch\n  init_seed: 1\n", rows), 0);
  EXPECT_EQ(equal_tensors("  init: normal\n", rows), 0);
}

TEST(RecipeInit, SeedStreamAndMethod) {
  EXPECT_EQ(init_settings(parse("  init: llama\n").recipe).method, model::InitMethod::kLlama);
  EXPECT_EQ(init_settings(parse("  init: torch\n").recipe).stream, model::InitStream::kTorch);
  EXPECT_EQ(init_settings(parse("  init: torch\n  init_stream: torch-erfinv\n").recipe).stream, model::InitStream::kTorchErfinv);
  EXPECT_EQ(init_settings(parse("").recipe).stream, model::InitStream::kKeyed);
  EXPECT_EQ(init_settings(parse("  init_seed: 12\n").recipe).seed, 12u);
  EXPECT_NE(message("  init_stream: torch\n").find("recipe.init_stream: found a stream of torch, expected keyed"), std::string::npos);
  EXPECT_NE(message("  init: some/model\n  init_seed: 3\n").find("recipe.init_seed"), std::string::npos);
  EXPECT_NE(message("  init: some/model\n  init_stream: torch\n").find("recipe.init_stream"), std::string::npos);
  EXPECT_NE(message("  init: torch\n  init_stream: torhc\n").find("torch-erfinv"), std::string::npos);
}

TEST(RecipeInit, TakesPartInTheIdentityOnlyWhenGiven) {
  const auto hash = [](const std::string& init) { return identify(parse(init).recipe, "d", "").hash(); };
  EXPECT_EQ(hash(""), hash("  init: random\n  init_stream: keyed\n  init_seed: -1\n"));
  EXPECT_NE(hash(""), hash("  init_seed: 1\n"));
  EXPECT_NE(hash("  init: torch\n"), hash("  init: torch\n  init_stream: torch-erfinv\n"));
  EXPECT_NE(hash("  init: torch\n"), hash("  init: llama\n"));
}

}  // namespace
}  // namespace dz::train
