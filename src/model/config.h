// The shape of a model: what Hugging Face's config.json says of an Olmo2 or Olmo3 model, typed and checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/tensor.h"
#include "numerics/rope.h"

namespace dz::model {

enum class Family : uint8_t { kOlmo2, kOlmo3 };
enum class LayerKind : uint8_t { kSliding, kFull };
using RopeTable = numerics::RopeTableKind;
using YarnScaling = numerics::YarnScaling;

// Which layers YaRN stretches. OLMo 3 was trained with kFull: sliding layers never look beyond their window. Several versions of other systems
// stretch every layer; kAll is for comparing with them.
enum class YarnLayers : uint8_t { kFull, kAll };

struct ModelConfig {
  Family family = Family::kOlmo3;
  int64_t d_model = 0;
  int64_t n_layers = 0;
  int64_t n_heads = 0;
  int64_t n_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t d_ff = 0;
  int64_t vocab_size = 0;
  int64_t window = 0;             // keys that a query of a sliding layer sees, itself included
  std::vector<LayerKind> layers;  // one a layer
  double rope_theta = 500000.0;
  RopeTable rope_table = RopeTable::kReference;
  std::optional<YarnScaling> yarn;
  YarnLayers yarn_layers = YarnLayers::kFull;
  float rms_norm_eps = 1e-6f;
  bool attention_bias = false;           // q, k, v and o have a bias
  bool tie_word_embeddings = false;      // the head is the embedding
  int64_t max_position_embeddings = -1;  // information only; -1 when not known
  std::vector<int32_t> eos_token_ids;
  std::optional<int32_t> bos_token_id, pad_token_id;

  int64_t q_width() const { return n_heads * head_dim; }
  int64_t kv_width() const { return n_kv_heads * head_dim; }
  // 0 for a full layer, as kernels::AttentionShape has it.
  int64_t window_of(int64_t layer) const { return layers[static_cast<size_t>(layer)] == LayerKind::kSliding ? window : 0; }
  // The rotary embedding of a layer: with YaRN or without.
  numerics::RopeShape rope_of(int64_t layer) const;
  // Full attention in every `full_every`-th layer (layers full_every - 1, 2 full_every - 1, ...); 0: nowhere, 1: everywhere.
  void set_window_pattern(int64_t full_every);
  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

// ConfigError naming `where`: key, the value and what is expected. Bounds keep every product of two sizes within int64_t.
void validate(const ModelConfig& config, const std::string& where);

// The text of a config.json. ConfigError for what this program does not compute (another model_type, rope scaling, another activation),
// DataError for text that is no such file. `path` is only named in errors. Source of fields and defaults: transformers, Olmo3Config.
ModelConfig from_hf_json(std::string_view text, const std::string& path);
// `dtype`: "float32" or "bfloat16", of the weights beside it.
std::string to_hf_json(const ModelConfig& config, std::string_view dtype = "float32");

enum class ParameterKind : uint8_t { kMatrix, kEmbedding, kNorm, kBias };

struct ParameterSpec {
  std::string name;  // the Hugging Face name
  Shape shape;       // matrices are [out, in]
  ParameterKind kind = ParameterKind::kMatrix;
};

// In byte order of the names; without lm_head.weight when it is tied.
std::vector<ParameterSpec> parameter_specs(const ModelConfig& config);
std::vector<std::string> parameter_names(const ModelConfig& config);
int64_t num_params(const ModelConfig& config);

// Useful operations of forward and backward for a token of an instance of `seq` tokens: 6 a parameter in matrix products (all linear layers
// and the head, not the embedding table or norms) and 12 * n_heads * head_dim for each key that a query sees on average, summed over layers.
double flops_per_token(const ModelConfig& config, int64_t seq);

}  // namespace dz::model
