#include "model/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernels/attention.h"

namespace dz::model {
namespace {

// Far above any model and far below what would overflow a product of two of them.
constexpr int64_t kMaxSize = int64_t{1} << 30;
constexpr int64_t kMaxLayers = 4096;
constexpr double kMaxParameters = 0x1p45;

void check_size(const std::string& where, const char* key, int64_t value, int64_t most) {
  if (value >= 1 && value <= most) return;
  throw ConfigError(Complaint{where + key, std::to_string(value), fmt::format("a number from 1 to {}", most), ""});
}

void check_token(const std::string& where, const char* key, int64_t id, int64_t vocab_size) {
  if (id >= 0 && id < vocab_size) return;
  throw ConfigError(Complaint{where + key, std::to_string(id), fmt::format("a token below vocab_size, {}", vocab_size), ""});
}

void check_heads(const ModelConfig& config, const std::string& where) {
  if (config.head_dim % 2 != 0) {
    throw ConfigError(Complaint{where + "head_dim", std::to_string(config.head_dim), "an even number", "RoPE turns pairs"});
  }
  if (config.n_heads % config.n_kv_heads != 0) {
    throw ConfigError(Complaint{where + "n_kv_heads", std::to_string(config.n_kv_heads), fmt::format("a divisor of n_heads, {}", config.n_heads),
                                "each key and value head serves the same number of query heads"});
  }
  check_size(where, "n_heads * head_dim", config.q_width(), kMaxSize);
}

void check_total(const ModelConfig& config, const std::string& where) {
  const double attention = 2.0 * static_cast<double>(config.q_width() + config.kv_width());
  const double layer = static_cast<double>(config.d_model) * (attention + 3.0 * static_cast<double>(config.d_ff));
  const double total =
      static_cast<double>(config.n_layers) * layer + 2.0 * static_cast<double>(config.vocab_size) * static_cast<double>(config.d_model);
  if (total <= kMaxParameters) return;
  throw ConfigError(Complaint{where + "d_model, d_ff, n_layers, vocab_size", fmt::format("{:.1e} parameters together", total),
                              fmt::format("at most {:.1e}", kMaxParameters), ""});
}

void check_layers(const ModelConfig& config, const std::string& where) {
  if (static_cast<int64_t>(config.layers.size()) != config.n_layers) {
    throw ConfigError(
        Complaint{where + "layer_types", fmt::format("{} layers", config.layers.size()), fmt::format("n_layers, {}", config.n_layers), ""});
  }
  const bool any_sliding = std::ranges::find(config.layers, LayerKind::kSliding) != config.layers.end();
  if (any_sliding) check_size(where, "window", config.window, kMaxSize);
  if (any_sliding && config.family == Family::kOlmo2) {
    throw ConfigError(Complaint{where + "layer_types", "a sliding layer", "full attention in every layer of an olmo2 model", "use the family olmo3"});
  }
}

void check_yarn(const YarnScaling& yarn, const std::string& where) {
  const auto check = [&](const char* key, double value, double least, double most) {
    if (value >= least && value <= most) return;
    throw ConfigError(Complaint{where + key, fmt::format("{}", value), fmt::format("a number from {} to {}", least, most), "of YaRN"});
  };
  check("factor", yarn.factor, 1, 1e6);
  check("original_max_position_embeddings", static_cast<double>(yarn.original_max_position_embeddings), 1, static_cast<double>(kMaxSize));
  check("beta_slow", yarn.beta_slow, 1e-6, 1e6);
  check("beta_fast", yarn.beta_fast, yarn.beta_slow, 1e6);
  check("attention_factor", yarn.attention_factor, 1e-3, 1e3);
}

}  // namespace

void ModelConfig::set_window_pattern(int64_t full_every) {
  layers.assign(static_cast<size_t>(std::max<int64_t>(n_layers, 0)), LayerKind::kSliding);
  if (full_every <= 0) return;
  for (int64_t i = full_every - 1; i < n_layers; i += full_every) layers[static_cast<size_t>(i)] = LayerKind::kFull;
}

numerics::RopeShape ModelConfig::rope_of(int64_t layer) const {
  const bool stretched = yarn && (yarn_layers == YarnLayers::kAll || layers[static_cast<size_t>(layer)] == LayerKind::kFull);
  return {.head_dim = head_dim, .theta = rope_theta, .yarn = stretched ? yarn : std::nullopt};
}

void validate(const ModelConfig& config, const std::string& where_in) {
  const std::string where = where_in.empty() ? "" : where_in + ".";
  check_size(where, "d_model", config.d_model, kMaxSize);
  check_size(where, "n_layers", config.n_layers, kMaxLayers);
  check_size(where, "n_heads", config.n_heads, kMaxSize);
  check_size(where, "n_kv_heads", config.n_kv_heads, kMaxSize);
  check_size(where, "head_dim", config.head_dim, kernels::kMaxHeadDim);
  check_size(where, "d_ff", config.d_ff, kMaxSize);
  check_size(where, "vocab_size", config.vocab_size, kMaxSize);
  check_heads(config, where);
  check_total(config, where);
  check_layers(config, where);
  if (!(std::isfinite(config.rope_theta) && config.rope_theta > 1.0)) {
    throw ConfigError(Complaint{where + "rope_theta", fmt::format("{}", config.rope_theta), "a number above 1", ""});
  }
  if (config.yarn) check_yarn(*config.yarn, where + "rope.");
  if (!(config.rms_norm_eps > 0.0f && config.rms_norm_eps < 1.0f)) {
    throw ConfigError(Complaint{where + "rms_norm_eps", fmt::format("{}", config.rms_norm_eps), "a number between 0 and 1", "OLMo uses 1e-6"});
  }
  for (const int32_t id : config.eos_token_ids) check_token(where, "eos_token_id", id, config.vocab_size);
  if (config.bos_token_id) check_token(where, "bos_token_id", *config.bos_token_id, config.vocab_size);
  if (config.pad_token_id) check_token(where, "pad_token_id", *config.pad_token_id, config.vocab_size);
}

std::vector<ParameterSpec> parameter_specs(const ModelConfig& config) {
  using enum ParameterKind;
  std::vector<ParameterSpec> specs;
  const auto add = [&](std::string name, Shape shape, ParameterKind kind) { specs.push_back({std::move(name), std::move(shape), kind}); };
  add("model.embed_tokens.weight", {config.vocab_size, config.d_model}, kEmbedding);
  add("model.norm.weight", {config.d_model}, kNorm);
  if (!config.tie_word_embeddings) add("lm_head.weight", {config.vocab_size, config.d_model}, kMatrix);
  for (int64_t i = 0; i < config.n_layers; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    const auto linear = [&](const char* name, int64_t out, int64_t in, bool bias) {
      add(layer + name + ".weight", {out, in}, kMatrix);
      if (bias) add(layer + name + ".bias", {out}, kBias);
    };
    linear("self_attn.q_proj", config.q_width(), config.d_model, config.attention_bias);
    linear("self_attn.k_proj", config.kv_width(), config.d_model, config.attention_bias);
    linear("self_attn.v_proj", config.kv_width(), config.d_model, config.attention_bias);
    linear("self_attn.o_proj", config.d_model, config.q_width(), config.attention_bias);
    add(layer + "self_attn.q_norm.weight", {config.q_width()}, kNorm);
    add(layer + "self_attn.k_norm.weight", {config.kv_width()}, kNorm);
    linear("mlp.gate_proj", config.d_ff, config.d_model, false);
    linear("mlp.up_proj", config.d_ff, config.d_model, false);
    linear("mlp.down_proj", config.d_model, config.d_ff, false);
    add(layer + "post_attention_layernorm.weight", {config.d_model}, kNorm);
    add(layer + "post_feedforward_layernorm.weight", {config.d_model}, kNorm);
  }
  std::ranges::sort(specs, {}, &ParameterSpec::name);
  return specs;
}

std::vector<std::string> parameter_names(const ModelConfig& config) {
  std::vector<std::string> names;
  for (ParameterSpec& spec : parameter_specs(config)) names.push_back(std::move(spec.name));
  return names;
}

int64_t num_params(const ModelConfig& config) {
  int64_t count = 0;
  for (const ParameterSpec& spec : parameter_specs(config)) count += element_count(spec.shape);
  return count;
}

double flops_per_token(const ModelConfig& config, int64_t seq) {
  const double attention = 2.0 * static_cast<double>(config.q_width() + config.kv_width()) * static_cast<double>(config.d_model);
  const double mlp = 3.0 * static_cast<double>(config.d_ff) * static_cast<double>(config.d_model);
  const double head = static_cast<double>(config.vocab_size) * static_cast<double>(config.d_model);
  double keys = 0.0;  // that a query sees on average, over all layers
  for (int64_t layer = 0; layer < config.n_layers; ++layer) {
    const int64_t window = config.window_of(layer);
    const double reach = static_cast<double>(window == 0 ? seq : std::min(window, seq));
    // The first `reach` queries see 1, 2, ..., reach keys, the others `reach`.
    keys += reach - reach * (reach - 1.0) / 2.0 / static_cast<double>(seq);
  }
  return 6.0 * (static_cast<double>(config.n_layers) * (attention + mlp) + head) + 12.0 * static_cast<double>(config.q_width()) * keys;
}

}  // namespace dz::model
