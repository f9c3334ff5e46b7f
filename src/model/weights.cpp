#include "model/weights.h"

#include <fmt/format.h>

#include <span>
#include <type_traits>

#include "kernels/state.h"

namespace dz::model {

ModelIndex::ModelIndex(const ModelConfig& config, const Parameters& parameters) {
  embedding = parameters.index_of("model.embed_tokens.weight");
  final_norm = parameters.index_of("model.norm.weight");
  head = config.tie_word_embeddings ? embedding : parameters.index_of("lm_head.weight");
  for (int64_t i = 0; i < config.n_layers; ++i) {
    const auto at = [&](const char* name) { return parameters.index_of(fmt::format("model.layers.{}.{}", i, name)); };
    LayerIndex layer;
    layer.q = at("self_attn.q_proj.weight");
    layer.k = at("self_attn.k_proj.weight");
    layer.v = at("self_attn.v_proj.weight");
    layer.o = at("self_attn.o_proj.weight");
    layer.gate = at("mlp.gate_proj.weight");
    layer.up = at("mlp.up_proj.weight");
    layer.down = at("mlp.down_proj.weight");
    layer.q_norm = at("self_attn.q_norm.weight");
    layer.k_norm = at("self_attn.k_norm.weight");
    layer.attention_norm = at("post_attention_layernorm.weight");
    layer.mlp_norm = at("post_feedforward_layernorm.weight");
    if (config.attention_bias) {
      layer.q_bias = at("self_attn.q_proj.bias");
      layer.k_bias = at("self_attn.k_proj.bias");
      layer.v_bias = at("self_attn.v_proj.bias");
      layer.o_bias = at("self_attn.o_proj.bias");
    }
    layers.push_back(layer);
  }
}

int64_t matrix_elements(const ModelConfig& config) {
  int64_t count = 0;
  for (const ParameterSpec& spec : parameter_specs(config)) {
    const bool multiplied = spec.kind == ParameterKind::kMatrix || (spec.kind == ParameterKind::kEmbedding && config.tie_word_embeddings);
    if (multiplied) count += element_count(spec.shape);
  }
  return count;
}

template <class T>
void CastWeights<T>::set(const ModelConfig& config, const Parameters& parameters, ThreadPool& pool) {
  const ModelIndex index(config, parameters);
  if constexpr (!std::is_same_v<T, float>) cast_.resize(static_cast<size_t>(matrix_elements(config)));
  size_t used = 0;
  const auto vector = [&](size_t at) { return at == LayerIndex::kNone ? nullptr : parameters.tensor(at).data(); };
  const auto matrix = [&](size_t at) -> const T* {
    const std::span<const float> values = parameters.tensor(at);
    if constexpr (std::is_same_v<T, float>) {
      return values.data();
    } else {
      T* out = cast_.data() + used;
      used += values.size();
      kernels::cast_to_bf16({.count = static_cast<int64_t>(values.size()), .x = values.data(), .out = out}, pool);
      return out;
    }
  };
  embedding = parameters.tensor(index.embedding).data();
  head = matrix(index.head);
  final_norm = vector(index.final_norm);
  layers.clear();
  for (const LayerIndex& at : index.layers) {
    layers.push_back({.q = matrix(at.q),
                      .k = matrix(at.k),
                      .v = matrix(at.v),
                      .o = matrix(at.o),
                      .gate = matrix(at.gate),
                      .up = matrix(at.up),
                      .down = matrix(at.down),
                      .q_norm = vector(at.q_norm),
                      .k_norm = vector(at.k_norm),
                      .attention_norm = vector(at.attention_norm),
                      .mlp_norm = vector(at.mlp_norm),
                      .q_bias = vector(at.q_bias),
                      .k_bias = vector(at.k_bias),
                      .v_bias = vector(at.v_bias),
                      .o_bias = vector(at.o_bias)});
  }
}

template class CastWeights<bf16>;
template class CastWeights<float>;

}  // namespace dz::model
