// Reads config.json as Hugging Face writes it for Olmo2 and Olmo3 models. Missing keys take the defaults of transformers' Olmo2Config and
// Olmo3Config.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "model/config.h"

namespace dz::model {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kKinds[] = {"full_attention", "sliding_attention"};

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

// What one place of the file says of the rotary embedding.
struct RopeStatement {
  std::string where;
  std::optional<double> theta;
  bool of_scaling = false;  // it says whether there is scaling
  std::optional<YarnScaling> yarn;
};

YarnScaling read_yarn(const Reader& read) {
  for (const char* key : {"factor", "original_max_position_embeddings"}) {
    if (read.find(key) == nullptr) read.fail(key, "a number: YaRN needs it");
  }
  for (const char* key : {"mscale", "mscale_all_dim"}) {
    if (read.find(key) != nullptr) read.fail(key, "no such key", "this form of YaRN is not supported; attention_factor says the same");
  }
  YarnScaling yarn{.factor = read.number("factor", 0),
                   .original_max_position_embeddings = read.integer("original_max_position_embeddings", 0),
                   .beta_fast = read.number("beta_fast", 32.0),
                   .beta_slow = read.number("beta_slow", 1.0),
                   .truncate = read.boolean("truncate", true)};
  yarn.attention_factor = read.number("attention_factor", yarn.factor >= 1.0 ? numerics::yarn_attention_factor(yarn.factor) : 0.0);
  return yarn;
}

RopeStatement read_statement(const Json& object, const std::string& where) {
  const Reader read(object, where);
  RopeStatement statement{.where = where};
  if (read.find("rope_theta") != nullptr) statement.theta = read.number("rope_theta", 0);
  const char* type_key = read.find("rope_type") != nullptr ? "rope_type" : "type";
  const std::string type = read.text(type_key, "");
  if (read.find("type") != nullptr && read.text("type", "") != type) read.fail("type", "what rope_type says, " + type);
  if (type.empty() && read.find("factor") != nullptr) read.fail("rope_type", "default or yarn");
  statement.of_scaling = !type.empty();
  if (type == "yarn") {
    statement.yarn = read_yarn(read);
  } else if (!type.empty() && type != "default") {
    read.fail(type_key, "default or yarn", "no other RoPE scaling is supported");
  }
  return statement;
}

[[noreturn]] void contradiction(const std::string& path, const std::string& one, const std::string& other) {
  throw ConfigError(Complaint{path, one + ", but " + other, "one value", "the file cannot say which is meant; correct it by hand"});
}

// Everything that the file says: rope_theta and rope_scaling, rope_parameters flat, rope_parameters by kind of layer.
struct RopeStatements {
  std::vector<RopeStatement> of_full;  // of all layers, or of full attention
  std::optional<RopeStatement> of_sliding;
};

RopeStatements read_statements(const Reader& read, const std::string& path) {
  RopeStatements all;
  if (read.find("rope_theta") != nullptr) all.of_full.push_back({.where = path + ": rope_theta", .theta = read.number("rope_theta", 0)});
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Json* object = read.find(key);
    if (object == nullptr) continue;
    if (!object->is_object()) read.fail(key, "null or an object");
    all.of_full.push_back(read_statement(*object, path + ": " + key));
    for (const char* kind : kKinds) {
      const auto of_kind = object->find(kind);
      if (of_kind == object->end() || of_kind->is_null()) continue;
      if (!of_kind->is_object()) read.fail(key, "an object for each kind of layer");
      RopeStatement statement = read_statement(*of_kind, path + ": " + key + "." + kind);
      if (kind == kKinds[0]) all.of_full.push_back(std::move(statement));
      if (kind == kKinds[1]) all.of_sliding = std::move(statement);
    }
  }
  return all;
}

void read_rope(const Reader& read, const std::string& path, ModelConfig& config) {
  const RopeStatements all = read_statements(read, path);
  std::vector<RopeStatement> of_theta = all.of_full;
  if (all.of_sliding) of_theta.push_back(*all.of_sliding);
  const RopeStatement *theta = nullptr, *scaling = nullptr;
  for (const RopeStatement& next : of_theta) {
    if (!next.theta) continue;
    if (theta != nullptr && *theta->theta != *next.theta)
      contradiction(path, fmt::format("rope_theta {} in {}", *theta->theta, theta->where), fmt::format("{} in {}", *next.theta, next.where));
    theta = &next;
  }
  for (const RopeStatement& next : all.of_full) {
    if (!next.of_scaling) continue;
    if (scaling != nullptr && scaling->yarn != next.yarn) contradiction(path, "one RoPE scaling in " + scaling->where, "another in " + next.where);
    scaling = &next;
  }
  // Without any theta: the default of the class, which newer versions raised for Olmo3 with its newer spelling.
  const bool newer = config.family == Family::kOlmo3 && read.find("rope_parameters") != nullptr;
  config.rope_theta = theta != nullptr ? *theta->theta : newer ? 500000.0 : 10000.0;
  if (scaling != nullptr) config.yarn = scaling->yarn;
  if (!all.of_sliding || !all.of_sliding->yarn) return;
  if (all.of_sliding->yarn != config.yarn) contradiction(path, "RoPE scaling in " + all.of_sliding->where, "another or none for full attention");
  config.yarn_layers = YarnLayers::kAll;
}

// The longest context follows from YaRN; a file whose numbers disagree has a wrong one among them.
void check_context(const Reader& read, const std::string& path, const ModelConfig& config) {
  if (!config.yarn || read.find("max_position_embeddings") == nullptr || config.max_position_embeddings < 1) return;
  const double context = config.yarn->factor * static_cast<double>(config.yarn->original_max_position_embeddings);
  if (std::abs(context - static_cast<double>(config.max_position_embeddings)) < 1.0) return;
  contradiction(path, fmt::format("max_position_embeddings {}", config.max_position_embeddings),
                fmt::format("factor {} times original_max_position_embeddings {} is {}", config.yarn->factor,
                            config.yarn->original_max_position_embeddings, context));
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

// What only this program says.
void read_own(const Reader& read, ModelConfig& config) {
  const std::string table = read.text("rope_table", "reference");
  if (table != "reference" && table != "exact") read.fail("rope_table", "reference or exact");
  config.rope_table = table == "exact" ? RopeTable::kExact : RopeTable::kReference;
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
  read_rope(read, path, config);
  read_own(read, config);
  read_layers(read, config);
  read_tokens(read, config);
  validate(config, path + ": config");
  check_context(read, path, config);
  return config;
}

}  // namespace dz::model
