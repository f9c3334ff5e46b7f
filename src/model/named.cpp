#include "model/named.h"

#include <algorithm>

namespace dz::model {
namespace {

struct NamedSize {
  const char* name;
  int64_t d_model, n_layers, n_heads, n_kv_heads, head_dim, d_ff;
  bool olmo2 = true, olmo3 = true;  // which family has it
};

constexpr NamedSize kSizes[] = {
    {"1M", 12, 4, 4, 4, 4, 256},
    {"14M", 128, 4, 8, 8, 16, 512},
    {"30M", 256, 4, 8, 8, 32, 768},
    {"60M", 384, 8, 8, 8, 48, 1536},
    {"100M", 512, 12, 8, 8, 64, 2048},
    {"190M", 768, 12, 12, 12, 64, 3072},
    {"370M", 1024, 16, 16, 16, 64, 4096},
    {"600M", 1344, 16, 16, 16, 84, 5376, true, false},
    {"600M", 1280, 16, 16, 16, 80, 5120, false, true},
    {"760M", 1536, 16, 16, 16, 96, 6144},
    {"1B", 2048, 18, 16, 16, 128, 8192, true, false},  // olmo3_1B has the body of olmo2_1B_v2
    {"1B_v2", 2048, 16, 16, 16, 128, 8192, true, false},
    {"1B", 2048, 16, 16, 16, 128, 8192, false, true},
    {"3B", 3328, 16, 16, 16, 208, 13312},
    {"7B", 4096, 32, 32, 32, 128, 11008},
    {"13B", 5120, 40, 40, 40, 128, 13824},
    {"32B", 5120, 64, 40, 8, 128, 27648},
};

ModelConfig build(const NamedSize& size, Family family) {
  ModelConfig config;
  config.family = family;
  config.d_model = size.d_model;
  config.n_layers = size.n_layers;
  config.n_heads = size.n_heads;
  config.n_kv_heads = size.n_kv_heads;
  config.head_dim = size.head_dim;
  config.d_ff = size.d_ff;
  config.vocab_size = kPaddedVocab;
  config.window = family == Family::kOlmo3 ? 4096 : 0;
  config.set_window_pattern(family == Family::kOlmo3 ? 4 : 1);
  return config;
}

// Norms of blocks: after attention and after the feed-forward layer.
double block_norms(const ModelConfig& config) { return 2.0 * static_cast<double>(config.n_layers * config.d_model); }

}  // namespace

std::optional<ModelConfig> named_model(std::string_view name) {
  const bool olmo3 = name.starts_with("olmo3_");
  if (!olmo3 && !name.starts_with("olmo2_")) return std::nullopt;
  for (const NamedSize& size : kSizes) {
    if ((olmo3 ? size.olmo3 : size.olmo2) && name.substr(6) == size.name) return build(size, olmo3 ? Family::kOlmo3 : Family::kOlmo2);
  }
  return std::nullopt;
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const bool olmo3 : {false, true}) {
    for (const NamedSize& size : kSizes) {
      if (olmo3 ? size.olmo3 : size.olmo2) names.push_back((olmo3 ? "olmo3_" : "olmo2_") + std::string(size.name));
    }
  }
  return names;
}

int64_t num_non_embedding_params(const ModelConfig& config) {
  const int64_t embedding = config.vocab_size * config.d_model;
  return num_params(config) - (config.tie_word_embeddings ? 0 : embedding);
}

double olmo_core_flops_per_token(const ModelConfig& config, int64_t seq, bool windows) {
  double keys = 0;
  for (int64_t layer = 0; layer < config.n_layers; ++layer) {
    const int64_t window = windows ? config.window_of(layer) : 0;
    keys += static_cast<double>(window == 0 ? seq : std::min(window, seq));
  }
  const double parameters = static_cast<double>(num_non_embedding_params(config)) - (windows ? block_norms(config) : 0.0);
  return 6.0 * parameters + 12.0 * static_cast<double>(config.q_width()) * keys;
}

}  // namespace dz::model
