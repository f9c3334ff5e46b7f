// A small, awkward model and a batch for it: nothing is a multiple of 16, 32 or 64, all features are on.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "model/transformer.h"
#include "numerics/philox.h"

namespace dz::model::test {

inline ModelConfig awkward_config(bool tied, bool bias) {
  ModelConfig config;
  config.d_model = 36;
  config.n_layers = 3;
  config.n_heads = 4;
  config.n_kv_heads = 2;
  config.head_dim = 6;
  config.d_ff = 40;
  config.vocab_size = 101;
  config.window = 13;
  config.set_window_pattern(3);
  config.tie_word_embeddings = tied;
  config.attention_bias = bias;
  return config;
}

// Larger than an initialisation, so that every part of the model matters.
inline Parameters lively_parameters(const ModelConfig& config, uint64_t seed = 5) {
  Parameters parameters(config);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const ParameterSpec& spec = parameters.specs()[i];
    const numerics::RandomStream stream(seed, spec.name);
    const bool norm = spec.kind == ParameterKind::kNorm;
    const double std = spec.kind == ParameterKind::kMatrix ? 1.2 / std::sqrt(static_cast<double>(spec.shape[1])) : 0.4;
    const auto values = parameters.tensor(i);
    for (size_t j = 0; j < values.size(); ++j) values[j] = (norm ? 1.0f : 0.0f) + stream.truncated_normal(j, std);
  }
  return parameters;
}

struct SyntheticBatch {
  std::vector<int32_t> tokens, targets, first_visible;
  int64_t instances = 0, seq = 0;

  // Documents of random length; a few targets are masked.
  SyntheticBatch(int64_t instances_in, int64_t seq_in, int64_t vocab, uint64_t seed = 9) : instances(instances_in), seq(seq_in) {
    const numerics::RandomStream stream(seed, "batch");
    int32_t document = 0;
    for (int64_t i = 0; i < instances * seq; ++i) {
      const uint64_t bits = stream.bits(static_cast<uint64_t>(i)) >> 8;
      const int32_t position = static_cast<int32_t>(i % seq);
      if (position == 0 || bits % 23 == 0) document = position;
      tokens.push_back(static_cast<int32_t>(bits / 64 % static_cast<uint64_t>(vocab)));
      targets.push_back(bits % 11 == 0 ? -1 : static_cast<int32_t>(bits / 8192 % static_cast<uint64_t>(vocab)));
      first_visible.push_back(document);
    }
  }

  // The instances [begin, end).
  Batch part(int64_t begin, int64_t end) const {
    const int64_t first = begin * seq;
    return {.instances = end - begin,
            .seq = seq,
            .tokens = tokens.data() + first,
            .targets = targets.data() + first,
            .first_visible = first_visible.data() + first};
  }
  int64_t labels() const {
    int64_t count = 0;
    for (const int32_t target : targets) count += target >= 0 ? 1 : 0;
    return count;
  }
};

}  // namespace dz::model::test
