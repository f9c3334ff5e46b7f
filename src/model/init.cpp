#include "model/init.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/check.h"
#include "base/thread_pool.h"
#include "model/weights.h"
#include "numerics/functions64.h"
#include "numerics/philox.h"
#include "numerics/torch_random.h"

namespace dz::model {
namespace {

constexpr double kStd = 0.02;

double inverse_root(int64_t n) { return numerics::pow(static_cast<double>(n), -0.5); }

// 7 of "model.layers.7.mlp.up_proj.weight".
int64_t layer_of(std::string_view name) {
  constexpr std::string_view kPrefix = "model.layers.";
  DZ_CHECK(name.starts_with(kPrefix), "name", name);
  int64_t layer = 0;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), layer);
  return layer;
}

int64_t in_features(const ModelConfig& config, std::string_view name) {
  if (name.ends_with("o_proj.weight")) return config.q_width();
  return name.ends_with("down_proj.weight") ? config.d_ff : config.d_model;
}

// The order in which OLMo-core draws: the embedding, then block by block, then the head.
std::vector<size_t> drawing_order(const ModelConfig& config, const Parameters& parameters) {
  const ModelIndex index(config, parameters);
  std::vector<size_t> order = {index.embedding};
  for (const LayerIndex& layer : index.layers) {
    for (const size_t matrix : {layer.q, layer.k, layer.v, layer.o, layer.gate, layer.up, layer.down}) order.push_back(matrix);
  }
  if (!config.tie_word_embeddings) order.push_back(index.head);
  return order;
}

void fill_keyed(uint64_t seed, std::string_view name, const InitDeviation& deviation, std::span<float> values, ThreadPool& pool) {
  constexpr int64_t kGrain = 4096;
  const numerics::RandomStream stream(seed, name);
  pool.parallel_ranges(static_cast<int64_t>(values.size()), kGrain, [&](int64_t begin, int64_t end) {
    const std::span<float> part = values.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
    const auto first = static_cast<uint64_t>(begin);
    if (deviation.cut) return fill_truncated_normal(stream, deviation.std, first, part);
    for (size_t i = 0; i < part.size(); ++i) part[i] = stream.normal(first + i, deviation.std);
  });
}

bool is_drawn(ParameterKind kind) { return kind == ParameterKind::kMatrix || kind == ParameterKind::kEmbedding; }

// Norms 1, biases 0.
void fill_the_rest(Parameters& parameters) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    const ParameterKind kind = parameters.specs()[i].kind;
    if (!is_drawn(kind)) std::ranges::fill(parameters.tensor(i), kind == ParameterKind::kNorm ? 1.0f : 0.0f);
  }
}

}  // namespace

InitDeviation init_deviation(const ModelConfig& config, InitMethod method, std::string_view name) {
  const double narrow = inverse_root(config.d_model);
  if (name == "model.embed_tokens.weight") {
    if (method == InitMethod::kNormal) return {.std = kStd};
    return {.std = method == InitMethod::kNormalized ? narrow : 1.0, .cut = false};
  }
  if (name == "lm_head.weight") return {.std = method == InitMethod::kNormal ? kStd : narrow};
  if (method == InitMethod::kFanIn) return {.std = inverse_root(in_features(config, name))};
  const double base = method == InitMethod::kNormalized ? narrow : kStd;
  // What leads back into the residual stream; up (w3) belongs to it for llama, not for normalized.
  const bool out = name.ends_with("o_proj.weight") || name.ends_with("down_proj.weight");
  const bool deep = method != InitMethod::kNormal && (out || (method != InitMethod::kNormalized && name.ends_with("up_proj.weight")));
  if (!deep) return {.std = base};
  const int64_t depth = method == InitMethod::kLlamaDepth ? layer_of(name) + 1 : config.n_layers;
  return {.std = base / __builtin_sqrt(static_cast<double>(2 * depth))};
}

void init_parameters(const InitSettings& settings, const ModelConfig& config, Parameters& parameters, ThreadPool& pool) {
  fill_the_rest(parameters);
  numerics::TorchStream torch(settings.seed);
  const auto cut = settings.stream == InitStream::kTorch ? numerics::TorchCut::kRejection : numerics::TorchCut::kErfinv;
  for (const size_t i : drawing_order(config, parameters)) {
    const std::string& name = parameters.specs()[i].name;
    const InitDeviation deviation = init_deviation(config, settings.method, name);
    const std::span<float> values = parameters.tensor(i);
    if (settings.stream == InitStream::kKeyed) {
      fill_keyed(settings.seed, name, deviation, values, pool);
    } else if (deviation.cut) {
      torch.truncated_normal(values, deviation.std, cut);
    } else {
      torch.normal(values, 0.0, deviation.std);
    }
  }
}

void init_parameters(uint64_t seed, Parameters& parameters, ThreadPool& pool) {
  fill_the_rest(parameters);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const ParameterSpec& spec = parameters.specs()[i];
    if (is_drawn(spec.kind)) fill_keyed(seed, spec.name, {.std = kStd}, parameters.tensor(i), pool);
  }
}

}  // namespace dz::model
