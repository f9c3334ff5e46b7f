// Writes config.json for Hugging Face's loaders, and rewrites the rotary embedding of one into what all of them read.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "model/config.h"
#include "model/hf_config.h"

namespace dz::model {
namespace {

using Json = nlohmann::ordered_json;

Json parse_object(std::string_view text, const std::string& path) {
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) throw DataError(Complaint{path, "", "a JSON object", "this should be the config.json of a Hugging Face model"});
  return json;
}

const Json* find(const Json& json, const char* key) {
  const auto it = json.find(key);
  return it == json.end() || it->is_null() ? nullptr : &*it;
}

bool has_windows(const ModelConfig& config) { return std::ranges::find(config.layers, LayerKind::kSliding) != config.layers.end(); }

// All numbers, so that no reader's default matters. truncate is left out where it is every reader's default: released files do not have it.
Json yarn_json(const YarnScaling& yarn) {
  Json json{{"rope_type", "yarn"},         {"factor", yarn.factor},       {"original_max_position_embeddings", yarn.original_max_position_embeddings},
            {"beta_fast", yarn.beta_fast}, {"beta_slow", yarn.beta_slow}, {"attention_factor", yarn.attention_factor}};
  if (!yarn.truncate) json["truncate"] = false;
  return json;
}

bool needs_nesting(const ModelConfig& config) { return config.yarn && config.yarn_layers == YarnLayers::kAll; }

void write_rope(const ModelConfig& config, Json& json) {
  if (needs_nesting(config)) {
    Json of_kind = yarn_json(*config.yarn);
    of_kind["rope_theta"] = config.rope_theta;
    json["rope_parameters"] = {{"full_attention", of_kind}, {"sliding_attention", of_kind}};
    return;
  }
  json["rope_scaling"] = config.yarn ? yarn_json(*config.yarn) : Json(nullptr);
  json["rope_theta"] = config.rope_theta;
}

}  // namespace

std::string to_hf_json(const ModelConfig& config, std::string_view dtype) {
  const bool olmo3 = config.family == Family::kOlmo3;
  const auto optional_token = [](const std::optional<int32_t>& id) { return id ? Json(*id) : Json(nullptr); };
  Json json;
  json["architectures"] = {olmo3 ? "Olmo3ForCausalLM" : "Olmo2ForCausalLM"};
  json["attention_bias"] = config.attention_bias;
  json["attention_dropout"] = 0.0;
  json["bos_token_id"] = optional_token(config.bos_token_id);
  json["dtype"] = dtype;
  json["eos_token_id"] = nullptr;
  if (config.eos_token_ids.size() == 1) json["eos_token_id"] = config.eos_token_ids[0];
  if (config.eos_token_ids.size() > 1) json["eos_token_id"] = config.eos_token_ids;
  json["head_dim"] = config.head_dim;
  json["hidden_act"] = "silu";
  json["hidden_size"] = config.d_model;
  json["initializer_range"] = 0.02;
  json["intermediate_size"] = config.d_ff;
  if (olmo3) {
    Json types = Json::array();
    for (const LayerKind kind : config.layers) types.push_back(kind == LayerKind::kSliding ? "sliding_attention" : "full_attention");
    json["layer_types"] = std::move(types);
  }
  json["max_position_embeddings"] = config.max_position_embeddings;
  json["model_type"] = olmo3 ? "olmo3" : "olmo2";
  json["num_attention_heads"] = config.n_heads;
  json["num_hidden_layers"] = config.n_layers;
  json["num_key_value_heads"] = config.n_kv_heads;
  json["pad_token_id"] = optional_token(config.pad_token_id);
  // As the shortest double with this float, so that 1e-6 does not become 9.99999997e-07.
  json["rms_norm_eps"] = std::stod(fmt::format("{}", config.rms_norm_eps));
  write_rope(config, json);
  if (config.rope_table == RopeTable::kExact) json["rope_table"] = "exact";  // a key of ours, which other readers pass over
  if (olmo3) json["sliding_window"] = config.window;
  json["tie_word_embeddings"] = config.tie_word_embeddings;
  json["use_cache"] = true;
  json["vocab_size"] = config.vocab_size;
  return json.dump(2) + "\n";
}

RopeSpelling rope_spelling(std::string_view text, const std::string& path) {
  const Json json = parse_object(text, path);
  if (const Json* parameters = find(json, "rope_parameters")) {
    const bool nested = find(*parameters, "full_attention") != nullptr || find(*parameters, "sliding_attention") != nullptr;
    return nested ? RopeSpelling::kNested : RopeSpelling::kFlat;
  }
  return find(json, "rope_scaling") != nullptr ? RopeSpelling::kScaling : RopeSpelling::kPlain;
}

std::string hf_dtype(std::string_view text, const std::string& path) {
  const Json json = parse_object(text, path);
  for (const char* key : {"dtype", "torch_dtype"}) {
    const Json* dtype = find(json, key);
    if (dtype != nullptr && dtype->is_string()) return dtype->get<std::string>();
  }
  return "";
}

std::string with_portable_rope(std::string_view text, const std::string& path) {
  const ModelConfig config = from_hf_json(text, path);
  Json json = parse_object(text, path);
  const Json* scaling = find(json, "rope_scaling");
  const bool portable = find(json, "rope_parameters") == nullptr && (scaling == nullptr || find(*scaling, "rope_type") != nullptr);
  if (portable || needs_nesting(config)) return std::string(text);
  json.erase("rope_parameters");
  write_rope(config, json);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::vector<std::string> misreadings(const ModelConfig& config) {
  std::vector<std::string> all;
  if (config.rope_theta != 500000.0 && has_windows(config))
    all.push_back(fmt::format("transformers 5.24.0 gives sliding layers rope_theta 500000 instead of {}; 4.57.3 reads it right", config.rope_theta));
  if (config.yarn && !config.yarn->truncate) all.push_back("transformers 5.24.0 ignores truncate: false; 4.57.3 reads it right");
  if (needs_nesting(config))
    all.push_back("transformers 4.57.3 does not know YaRN for every kind of layer and reads rope_theta 10000 without YaRN; 5.24.0 reads it right");
  if (config.rope_table == RopeTable::kExact) all.push_back("other programs take cos and sin of float32 angles, not of exact ones");
  return all;
}

}  // namespace dz::model
