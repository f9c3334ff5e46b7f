// config.json in every spelling that released programs write, and what each must be read as (goldens of transformers 4.57.3 and 5.24.0).
#include "model/hf_config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "model/golden.h"
#include "numerics/rope.h"

namespace dz::model::test {
namespace {

using Json = nlohmann::json;

std::string config_text(const std::string& name) { return read_file(golden("configs/" + name + "/config.json")); }
Json golden_json(const std::string& name) { return Json::parse(read_file(golden("configs/" + name))); }

std::string error_of(const std::string& text) {
  try {
    from_hf_json(text, "config.json");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

void expect_rope(const numerics::RopeShape& got, const Json& wanted, const std::string& name) {
  EXPECT_EQ(got.theta, wanted["theta"].get<double>()) << name;
  ASSERT_EQ(got.yarn.has_value(), wanted["type"] == "yarn") << name;
  if (!got.yarn) return;
  EXPECT_EQ(got.yarn->factor, wanted["factor"].get<double>()) << name;
  EXPECT_EQ(got.yarn->original_max_position_embeddings, wanted["original_context"].get<int64_t>()) << name;
  EXPECT_EQ(got.yarn->beta_fast, wanted["beta_fast"].get<double>()) << name;
  EXPECT_EQ(got.yarn->beta_slow, wanted["beta_slow"].get<double>()) << name;
  EXPECT_EQ(got.yarn->truncate, wanted["truncate"].get<bool>()) << name;
  EXPECT_EQ(got.yarn->attention_factor, wanted["attention_factor"].get<double>()) << name;
}

TEST(HfSpellings, EachIsReadAsMeantOrRefused) {
  const Json expected = golden_json("expected.json");
  ASSERT_EQ(expected.size(), 17u);
  for (const auto& [name, wanted] : expected.items()) {
    if (wanted.contains("reject")) {
      EXPECT_NE(error_of(config_text(name)), "no error") << name;
      continue;
    }
    const ModelConfig got = from_hf_json(config_text(name), name);
    EXPECT_EQ(got.family, Family::kOlmo3);
    EXPECT_EQ(got.d_model, wanted["d_model"].get<int64_t>());
    EXPECT_EQ(got.d_ff, wanted["d_ff"].get<int64_t>());
    EXPECT_EQ(got.n_heads, wanted["n_heads"].get<int64_t>());
    EXPECT_EQ(got.n_kv_heads, wanted["n_kv_heads"].get<int64_t>());
    EXPECT_EQ(got.head_dim, wanted["head_dim"].get<int64_t>());
    EXPECT_EQ(got.vocab_size, wanted["vocab"].get<int64_t>());
    EXPECT_EQ(got.rms_norm_eps, static_cast<float>(wanted["norm_eps"].get<double>()));
    EXPECT_EQ(got.max_position_embeddings, wanted["max_context"].get<int64_t>()) << name;
    EXPECT_EQ(got.eos_token_ids, wanted["eos"].get<std::vector<int32_t>>());
    EXPECT_EQ(got.pad_token_id, wanted["pad"].get<int32_t>());
    EXPECT_FALSE(got.bos_token_id || got.tie_word_embeddings || got.attention_bias);
    EXPECT_EQ(hf_dtype(config_text(name), name), wanted["dtype"].get<std::string>()) << name;
    ASSERT_EQ(got.n_layers, static_cast<int64_t>(wanted["window"].size())) << name;
    for (int64_t layer = 0; layer < got.n_layers; ++layer) {
      const int64_t window = wanted["window"][static_cast<size_t>(layer)];
      EXPECT_EQ(got.window_of(layer), window < 0 ? 0 : window) << name;
      expect_rope(got.rope_of(layer), wanted["rope"][window < 0 ? "full_attention" : "sliding_attention"], name);
    }
  }
}

// Where the file was read rightly by transformers 4.57.3, our table has its bits.
TEST(HfSpellings, FrequenciesHaveTheBitsOfTransformers) {
  const Json computed = golden_json("transformers_4.57.3.json");
  for (const char* name : {"A_default", "A_theta_10000", "B_yarn", "B_yarn_theta_10000", "B_yarn_truncate_false", "B_yarn_no_attention_factor"}) {
    const ModelConfig config = from_hf_json(config_text(name), name);
    for (const int64_t layer : {0, 3}) {
      const Json& wanted = computed[name][layer == 3 ? "full_attention" : "sliding_attention"];
      const std::vector<float> got = numerics::rope_inverse_frequencies(config.rope_of(layer));
      Sha256 hash;
      hash.update({reinterpret_cast<const char*>(got.data()), got.size() * sizeof(float)});
      EXPECT_EQ(hash.hex().substr(0, 16), wanted["inv_freq_sha256"].get<std::string>()) << name << " " << layer;
    }
  }
}

TEST(HfSpellings, AreRecognised) {
  const auto spelling = [](const char* name) { return rope_spelling(config_text(name), name); };
  EXPECT_EQ(spelling("A_default"), RopeSpelling::kPlain);
  EXPECT_EQ(spelling("A_no_scaling_key_int_float"), RopeSpelling::kPlain);
  EXPECT_EQ(spelling("B_yarn"), RopeSpelling::kScaling);
  EXPECT_EQ(spelling("C_flat_yarn"), RopeSpelling::kFlat);
  EXPECT_EQ(spelling("D_nested_yarn_no_sliding"), RopeSpelling::kNested);
  EXPECT_THROW(rope_spelling("[]", "x"), DataError);
}

TEST(HfSpellings, RefusesTwoValuesForOneKey) {
  const std::string error = error_of(read_file(golden("configs/D_resaved.json")));
  EXPECT_NE(error.find("10000"), std::string::npos) << error;
  EXPECT_NE(error.find("500000"), std::string::npos) << error;
  EXPECT_NE(error.find("rope_parameters.full_attention"), std::string::npos) << error;
  const std::string context = error_of(config_text("bad_factor_and_max_position_disagree"));
  EXPECT_NE(context.find("32768"), std::string::npos) << context;
  EXPECT_NE(context.find("65536"), std::string::npos) << context;
  EXPECT_NE(error_of(config_text("bad_rope_type")).find("spiral"), std::string::npos);

  Json json = Json::parse(config_text("D_nested_yarn"));
  json["rope_theta"] = 500000;  // twice the same is no contradiction
  EXPECT_EQ(from_hf_json(json.dump(), ""), from_hf_json(config_text("B_yarn"), ""));
  json["rope_scaling"] = {{"rope_type", "default"}};
  EXPECT_NE(error_of(json.dump()).find("rope_scaling"), std::string::npos);
  json.erase("rope_scaling");
  json["rope_parameters"]["full_attention"]["type"] = "linear";
  EXPECT_NE(error_of(json.dump()).find("linear"), std::string::npos);
}

TEST(HfSpellings, RefusesYarnItWouldComputeWrongly) {
  struct {
    const char* key;
    Json value;
  } const kCases[] = {{"factor", nullptr},     {"factor", 0.5},           {"factor", "8"},      {"original_max_position_embeddings", nullptr},
                      {"mscale", 1.0},         {"mscale_all_dim", 0.7},   {"beta_slow", 64.0},  {"original_max_position_embeddings", 0},
                      {"beta_fast", -1},       {"attention_factor", 0.0}, {"truncate", "yes"},  {"factor", 1e300},
                      {"rope_type", "linear"}, {"rope_type", nullptr},    {"rope_theta", 10000}};
  for (const auto& row : kCases) {
    Json json = Json::parse(config_text("B_yarn"));
    json["rope_scaling"][row.key] = row.value;
    const std::string error = error_of(json.dump());
    const std::string named = std::string(row.key).starts_with("beta") ? "beta_" : row.key;
    EXPECT_NE(error.find(named), std::string::npos) << row.key << " " << row.value << ": " << error;
  }
}

TEST(HfSpellings, TheStatedAttentionFactorWins) {
  Json json = Json::parse(config_text("B_yarn"));
  json["rope_scaling"]["attention_factor"] = 1.0;
  const ModelConfig stated = from_hf_json(json.dump(), "");
  EXPECT_EQ(stated.yarn->attention_factor, 1.0);
  EXPECT_EQ(Json::parse(to_hf_json(stated))["rope_scaling"]["attention_factor"], 1.0);
  json["rope_scaling"].erase("attention_factor");
  EXPECT_EQ(from_hf_json(json.dump(), "").yarn->attention_factor, 1.2079441541679836);
}

TEST(HfSpellings, WrittenOnesAreReadBack) {
  const Json expected = golden_json("expected.json");
  for (const auto& [name, wanted] : expected.items()) {
    if (wanted.contains("reject")) continue;
    const ModelConfig config = from_hf_json(config_text(name), name);
    const std::string written = to_hf_json(config);
    EXPECT_EQ(from_hf_json(written, name), config) << name;
    EXPECT_FALSE(Json::parse(written).contains("rope_parameters")) << name;
    if (!config.yarn) continue;
    EXPECT_EQ(Json::parse(written)["rope_scaling"].size(), config.yarn->truncate ? 6u : 7u) << name;
  }
  ModelConfig own = from_hf_json(config_text("B_yarn"), "");
  own.rope_table = RopeTable::kExact;
  EXPECT_EQ(from_hf_json(to_hf_json(own), ""), own);
  own.yarn_layers = YarnLayers::kAll;
  EXPECT_EQ(from_hf_json(to_hf_json(own), ""), own);
  EXPECT_EQ(rope_spelling(to_hf_json(own), ""), RopeSpelling::kNested) << "nothing else says that sliding layers are stretched";
}

TEST(HfSpellings, RewritingKeepsEveryOtherKey) {
  for (const char* name :
       {"C_flat_default", "C_flat_yarn", "D_nested_default", "D_nested_yarn", "D_nested_yarn_no_sliding", "B_yarn_legacy_type_key"}) {
    Json before = Json::parse(config_text(name));
    before["some_key_of_tomorrow"] = {{"a", {1, 2.5, nullptr}}};
    const std::string text = with_portable_rope(before.dump(), name);
    const RopeSpelling spelling = rope_spelling(text, name);
    EXPECT_TRUE(spelling == RopeSpelling::kPlain || spelling == RopeSpelling::kScaling) << name;
    EXPECT_EQ(from_hf_json(text, name), from_hf_json(config_text(name), name)) << name;
    Json after = Json::parse(text);
    EXPECT_TRUE(after.contains("rope_scaling") && after.contains("rope_theta")) << name;
    const bool named = after["rope_scaling"].is_null() || (after["rope_scaling"].contains("rope_type") && !after["rope_scaling"].contains("type"));
    EXPECT_TRUE(named) << name;
    for (Json* json : {&before, &after}) {
      for (const char* key : {"rope_theta", "rope_scaling", "rope_parameters"}) json->erase(key);
    }
    EXPECT_EQ(after, before) << name;
  }
  for (const char* name : {"A_default", "A_torch_dtype", "B_yarn", "B_yarn_no_attention_factor", "B_yarn_truncate_false"})
    EXPECT_EQ(with_portable_rope(config_text(name), name), config_text(name)) << name;
}

TEST(HfSpellings, SaysWhoWouldMisreadTheExport) {
  const auto count = [](const char* name) { return misreadings(from_hf_json(config_text(name), name)).size(); };
  EXPECT_EQ(count("A_default"), 0u);
  EXPECT_EQ(count("D_nested_yarn"), 0u);
  EXPECT_EQ(count("A_theta_10000"), 1u);
  EXPECT_EQ(count("B_yarn_truncate_false"), 1u);
  EXPECT_EQ(misreadings(load_model(golden("olmo2")).config).size(), 0u);
}

}  // namespace
}  // namespace dz::model::test
