#include "convert/names.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace dz::convert {
namespace {

struct Pair {
  std::string_view hugging_face, olmo_core;
};

constexpr std::array<Pair, 3> kOutside = {
    {{"model.embed_tokens.weight", "embeddings.weight"}, {"model.norm.weight", "lm_head.norm.weight"}, {"lm_head.weight", "lm_head.w_out.weight"}}};

// In the order of the state dict.
constexpr std::array<Pair, 11> kModules = {{{"self_attn.q_proj", "attention.w_q"},
                                            {"self_attn.k_proj", "attention.w_k"},
                                            {"self_attn.v_proj", "attention.w_v"},
                                            {"self_attn.o_proj", "attention.w_out"},
                                            {"self_attn.q_norm", "attention.q_norm"},
                                            {"self_attn.k_norm", "attention.k_norm"},
                                            {"mlp.gate_proj", "feed_forward.w1"},
                                            {"mlp.up_proj", "feed_forward.w3"},
                                            {"mlp.down_proj", "feed_forward.w2"},
                                            {"post_attention_layernorm", "attention_norm"},
                                            {"post_feedforward_layernorm", "feed_forward_norm"}}};

constexpr std::string_view kLayers = "model.layers.";

struct LayerName {
  std::string_view number, module, leaf;  // "3", "mlp.up_proj", "weight"
};

std::optional<LayerName> split(std::string_view name) {
  if (!name.starts_with(kLayers)) return std::nullopt;
  name.remove_prefix(kLayers.size());
  const size_t dot = name.find('.'), last = name.rfind('.');
  if (dot == std::string_view::npos || last == dot) return std::nullopt;
  const LayerName parts{name.substr(0, dot), name.substr(dot + 1, last - dot - 1), name.substr(last + 1)};
  const bool numbered = !parts.number.empty() && parts.number.size() <= 4 && parts.number.find_first_not_of("0123456789") == std::string_view::npos;
  return numbered && (parts.leaf == "weight" || parts.leaf == "bias") ? std::optional(parts) : std::nullopt;
}

// Where a tensor stands in the state dict: part of the model, layer, module, weight before bias.
std::tuple<int, int, int, int> rank_of(std::string_view name) {
  for (size_t i = 0; i < kOutside.size(); ++i)
    if (kOutside[i].hugging_face == name) return {i == 0 ? 0 : 1 + static_cast<int>(i), 0, 0, 0};
  const auto parts = split(name);
  DZ_CHECK(parts, "name", name);
  const auto module = std::ranges::find(kModules, parts->module, &Pair::hugging_face);
  DZ_CHECK(module != kModules.end(), "name", name);
  return {1, std::stoi(std::string(parts->number)), static_cast<int>(module - kModules.begin()), parts->leaf == "bias" ? 1 : 0};
}

}  // namespace

std::optional<std::string> olmo_core_name(std::string_view hugging_face) {
  const auto outside = std::ranges::find(kOutside, hugging_face, &Pair::hugging_face);
  if (outside != kOutside.end()) return std::string(outside->olmo_core);
  const auto parts = split(hugging_face);
  if (!parts) return std::nullopt;
  const auto module = std::ranges::find(kModules, parts->module, &Pair::hugging_face);
  if (module == kModules.end()) return std::nullopt;
  return "blocks." + std::string(parts->number) + "." + std::string(module->olmo_core) + "." + std::string(parts->leaf);
}

std::vector<model::ParameterSpec> state_dict_order(const model::ModelConfig& config) {
  std::vector<model::ParameterSpec> specs = model::parameter_specs(config);
  std::ranges::sort(specs, {}, [](const model::ParameterSpec& spec) { return rank_of(spec.name); });
  return specs;
}

}  // namespace dz::convert
