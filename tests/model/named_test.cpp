// The named models against OLMo-core's counts: shape, parameters, tensors, bytes, operations.
#include "model/named.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "model/golden.h"

namespace dz::model::test {
namespace {

using Json = nlohmann::json;

Json counts() { return Json::parse(read_file(golden("parameter_counts.json"))); }

TEST(NamedModels, CountAsOlmoCoreDoes) {
  const Json table = counts();
  ASSERT_EQ(table["models"].size(), 19u);
  for (const auto& [name, row] : table["models"].items()) {
    std::optional<ModelConfig> config = named_model(name);
    ASSERT_TRUE(config) << name;
    EXPECT_EQ(config->d_model, row["d_model"].get<int64_t>()) << name;
    EXPECT_EQ(config->d_ff, row["d_ff"].get<int64_t>()) << name;
    EXPECT_EQ(config->n_layers, row["n_layers"].get<int64_t>()) << name;
    EXPECT_EQ(config->n_heads, row["n_heads"].get<int64_t>()) << name;
    EXPECT_EQ(config->n_kv_heads, row["n_kv_heads"].get<int64_t>()) << name;
    EXPECT_EQ(config->head_dim, row["head_dim"].get<int64_t>()) << name;
    EXPECT_EQ(config->rope_theta, row["rope_theta"].get<double>()) << name;
    EXPECT_EQ(config->rms_norm_eps, static_cast<float>(row["norm_eps"].get<double>())) << name;
    EXPECT_EQ(config->vocab_size, 100352) << name;
    const std::vector<int64_t> full = row["full_layers"];
    for (int64_t layer = 0; layer < config->n_layers; ++layer) {
      const bool is_full = std::ranges::find(full, layer) != full.end();
      EXPECT_EQ(config->window_of(layer), is_full ? 0 : row["window"].get<int64_t>()) << name << " " << layer;
    }
    for (const int64_t vocab : {100278, 100352}) {
      config->vocab_size = vocab;
      const Json& wanted = row["vocab_" + std::to_string(vocab)];
      EXPECT_EQ(num_params(*config), wanted["num_params"].get<int64_t>()) << name;
      EXPECT_EQ(2 * num_params(*config), wanted["bf16_bytes"].get<int64_t>()) << name;
      EXPECT_EQ(num_non_embedding_params(*config), wanted["num_non_embedding_params"].get<int64_t>()) << name;
      EXPECT_EQ(parameter_specs(*config).size(), wanted["tensors"].get<size_t>()) << name;
      EXPECT_EQ(olmo_core_flops_per_token(*config, 4096), wanted["flops_per_token_4096"].get<double>()) << name;
      EXPECT_EQ(olmo_core_flops_per_token(*config, 8192), wanted["flops_per_token_8192"].get<double>()) << name;
      EXPECT_LT(flops_per_token(*config, 8192), olmo_core_flops_per_token(*config, 8192)) << "ours leaves out what no query sees";
    }
  }
}

TEST(NamedModels, OperationsWithWindowsAsNewerOlmoCore) {
  const Json rows = counts()["olmo3_7B_at_8192"];
  for (const Json& row : rows) {
    ModelConfig config = named_model("olmo3_7B").value();
    config.vocab_size = row["vocab"];
    EXPECT_EQ(olmo_core_flops_per_token(config, 8192), row["olmo_core_2_4_0_per_token"].get<double>());
    EXPECT_EQ(olmo_core_flops_per_token(config, 8192, true), row["olmo_core_newer_window_aware_per_token"].get<double>());
    // Exact pairs of query and key: what this program counts, a sequence.
    EXPECT_NEAR(flops_per_token(config, 8192) * 8192 / row["exact_pairs_window_aware_per_sequence"].get<double>(), 1.0, 1e-12);
  }
}

TEST(NamedModels, EveryNameIsValid) {
  EXPECT_EQ(model_names().size(), 29u);
  for (const std::string& name : model_names()) {
    ASSERT_TRUE(named_model(name)) << name;
    validate(*named_model(name), name);
  }
  EXPECT_EQ(num_params(*named_model("olmo3_1M")), 2'448'620) << "head_dim 4, although d_model / n_heads is 3";
  EXPECT_EQ(num_params(*named_model("olmo3_100M")), 153'117'184);
  EXPECT_EQ(num_params(*named_model("olmo3_600M")), 676'414'720);
  EXPECT_EQ(num_params(*named_model("olmo2_600M")), 732'255'552);
  for (const char* wrong : {"", "olmo3", "olmo3_", "olmo3_8B", "olmo3_1B_v2", "olmo4_7B", "olmo3_7b"}) EXPECT_FALSE(named_model(wrong)) << wrong;
}

}  // namespace
}  // namespace dz::model::test
