// config.json as Hugging Face writes it for Olmo2 and Olmo3 models. Missing keys take the defaults of transformers' Olmo2Config and Olmo3Config.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "model/config.h"

namespace dz::model {
namespace {

using Json = nlohmann::ordered_json;

class Reader {
 public:
  Reader(const Json& json, const std::string& path) : json_(json), path_(path) {}

  // A key that is absent or null reads as the default.
  const Json* find(const char* key) const {
    const auto it = json_.find(key);
    return it == json_.end() || it->is_null() ? nullptr : &*it;
  }

  int64_t integer(const char* key, int64_t missing) const {
    const Json* value = find(key);
    if (value == nullptr) return missing;
    if (!value->is_number_integer()) fail(key, "a whole number");
    if (value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) fail(key, "a smaller number");
    return value->get<int64_t>();
  }

  double number(const char* key, double missing) const {
    const Json* value = find(key);
    if (value == nullptr) return missing;
    if (!value->is_number()) fail(key, "a number");
    return value->get<double>();
  }

  bool boolean(const char* key, bool missing) const {
    const Json* value = find(key);
    if (value == nullptr) return missing;
    if (!value->is_boolean()) fail(key, "true or false");
    return value->get<bool>();
  }

  std::string text(const char* key, const char* missing) const {
    const Json* value = find(key);
    if (value == nullptr) return missing;
    if (!value->is_string()) fail(key, "a string");
    return value->get<std::string>();
  }

  std::optional<int32_t> token(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    return token(key, *value);
  }

  int32_t token(const char* key, const Json& value) const {
    if (!value.is_number_integer() || value < 0 || value > INT32_MAX) fail(key, "a token number");
    return value.get<int32_t>();
  }

  [[noreturn]] void fail(const char* key, const std::string& expected, const std::string& hint = "") const {
    const Json* value = find(key);
    std::string found = value == nullptr ? "nothing" : value->dump(-1, ' ', false, Json::error_handler_t::replace);
    if (found.size() > 120) found = found.substr(0, 117) + "...";
    throw ConfigError(Complaint{path_ + ": " + key, found, expected, hint});
  }

 private:
  const Json& json_;
  const std::string& path_;
};

Family read_family(const Reader& read) {
  const std::string type = read.text("model_type", "");
  if (type == "olmo3") return Family::kOlmo3;
  if (type == "olmo2") return Family::kOlmo2;
  read.fail("model_type", "olmo2 or olmo3");
}

void refuse_scaling(const Reader& read, const char* key, const Json& rope) {
  for (const char* type_key : {"rope_type", "type"}) {
    const auto type = rope.find(type_key);
    if (type == rope.end() || type->is_null() || *type == "default") continue;
    read.fail(key, "plain RoPE", fmt::format("RoPE scaling ({}) is not supported by this version", type->dump()));
  }
}

// Three spellings: rope_theta (with rope_scaling null), rope_parameters flat, rope_parameters by kind of layer.
double read_theta(const Reader& read, Family family, const std::string& path) {
  if (const Json* scaling = read.find("rope_scaling")) {
    if (!scaling->is_object()) read.fail("rope_scaling", "null or an object");
    refuse_scaling(read, "rope_scaling", *scaling);
  }
  const Json* parameters = read.find("rope_parameters");
  if (parameters == nullptr) return read.number("rope_theta", 10000.0);
  if (!parameters->is_object()) read.fail("rope_parameters", "an object");
  refuse_scaling(read, "rope_parameters", *parameters);
  const double missing = read.number("rope_theta", family == Family::kOlmo3 ? 500000.0 : 10000.0);
  std::optional<double> theta;
  for (const char* kind : {"full_attention", "sliding_attention"}) {
    const auto of_kind = parameters->find(kind);
    if (of_kind == parameters->end()) continue;
    if (!of_kind->is_object()) read.fail("rope_parameters", "an object for each kind of layer");
    refuse_scaling(read, "rope_parameters", *of_kind);
    const double found = Reader(*of_kind, path).number("rope_theta", missing);
    if (theta && *theta != found) read.fail("rope_parameters", "one rope_theta for all layers");
    theta = found;
  }
  return theta ? *theta : Reader(*parameters, path).number("rope_theta", missing);
}

void read_layers(const Reader& read, ModelConfig& config) {
  if (config.n_layers < 1 || config.n_layers > 4096) read.fail("num_hidden_layers", "a number from 1 to 4096");
  if (config.family == Family::kOlmo2) return config.set_window_pattern(1);
  config.window = read.integer("sliding_window", 4096);
  const Json* types = read.find("layer_types");
  if (types == nullptr) return config.set_window_pattern(4);
  if (!types->is_array()) read.fail("layer_types", "a list");
  for (const Json& type : *types) {
    if (type == "sliding_attention") {
      config.layers.push_back(LayerKind::kSliding);
    } else if (type == "full_attention") {
      config.layers.push_back(LayerKind::kFull);
    } else {
      read.fail("layer_types", "sliding_attention or full_attention in each place");
    }
  }
}

void read_tokens(const Reader& read, ModelConfig& config) {
  config.bos_token_id = read.token("bos_token_id");
  config.pad_token_id = read.token("pad_token_id");
  const Json* eos = read.find("eos_token_id");
  if (eos == nullptr) return;
  if (!eos->is_array()) {
    config.eos_token_ids.push_back(read.token("eos_token_id", *eos));
    return;
  }
  for (const Json& id : *eos) config.eos_token_ids.push_back(read.token("eos_token_id", id));
}

}  // namespace

ModelConfig from_hf_json(std::string_view text, const std::string& path) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) throw DataError(Complaint{path, "", "a JSON object", "this should be the config.json of a Hugging Face model"});
  const Reader read(json, path);
  ModelConfig config;
  config.family = read_family(read);
  config.vocab_size = read.integer("vocab_size", 50304);
  config.d_model = read.integer("hidden_size", 4096);
  config.d_ff = read.integer("intermediate_size", 11008);
  config.n_layers = read.integer("num_hidden_layers", 32);
  config.n_heads = read.integer("num_attention_heads", 32);
  config.n_kv_heads = read.integer("num_key_value_heads", config.n_heads);
  if (read.find("head_dim") == nullptr && (config.n_heads < 1 || config.d_model % config.n_heads != 0)) {
    read.fail("num_attention_heads", fmt::format("a divisor of hidden_size, {}", config.d_model), "or give head_dim");
  }
  config.head_dim = read.find("head_dim") != nullptr ? read.integer("head_dim", 0) : config.d_model / config.n_heads;
  config.rms_norm_eps = static_cast<float>(read.number("rms_norm_eps", 1e-5));
  config.attention_bias = read.boolean("attention_bias", false);
  config.tie_word_embeddings = read.boolean("tie_word_embeddings", false);
  config.max_position_embeddings = read.integer("max_position_embeddings", 2048);
  if (read.text("hidden_act", "silu") != "silu") read.fail("hidden_act", "silu");
  if (read.number("attention_dropout", 0.0) != 0.0) read.fail("attention_dropout", "0", "dropout is not supported");
  config.rope_theta = read_theta(read, config.family, path);
  read_layers(read, config);
  read_tokens(read, config);
  validate(config, path + ": config");
  return config;
}

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
  json["rope_scaling"] = nullptr;
  json["rope_theta"] = config.rope_theta;
  if (olmo3) json["sliding_window"] = config.window;
  json["tie_word_embeddings"] = config.tie_word_embeddings;
  json["use_cache"] = true;
  json["vocab_size"] = config.vocab_size;
  return json.dump(2) + "\n";
}

}  // namespace dz::model
