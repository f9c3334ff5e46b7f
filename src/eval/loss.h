// Held-out loss: the mean cross entropy of a model over one split of token shards, by source. The same forward code as training.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/token_shards.h"
#include "model/config.h"
#include "model/parameters.h"

namespace dz::eval {

struct LossSettings {
  data::Split split = data::Split::kHeldOut;
  std::string dtype = "bf16";   // bf16 | fp32
  int64_t sequence_length = 0;  // instances are cut as in training: the tail of a source is left out
  bool document_masks = true;
  int64_t micro_batch = 8;  // instances at a time; changes no bit
};

struct SourceLoss {
  std::string name;
  int64_t tokens = 0;  // that were predicted
  double sum = 0;      // of their cross entropies, nats, in double, instances in order
  double loss() const { return tokens > 0 ? sum / static_cast<double>(tokens) : 0; }
};

struct LossResult {
  std::vector<SourceLoss> sources;  // those with at least one instance
  SourceLoss total;                 // "total"
};

// progress(instances done, of all) is called now and then. ConfigError when no source has an instance, or the vocabulary does not fit.
LossResult held_out_loss(const model::ModelConfig& config, const model::Parameters& parameters, std::shared_ptr<const data::TokenShards> shards,
                         const LossSettings& settings, ThreadPool& pool, const std::function<void(int64_t, int64_t)>& progress = {});

// {"step", "dtype", "split", "sources": [{"name", "tokens", "loss", "perplexity"}], "total": {...}}; step < 0 leaves the key out.
std::string to_json(const LossResult& result, const LossSettings& settings, int64_t step);

}  // namespace dz::eval
