// The models that speed is measured on: those of the peers' scripts, so that one figure of ours stands beside one of theirs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "model/config.h"

namespace dz::model {

struct BenchSize {
  std::string name;
  ModelConfig config;           // OLMo 3: untied embeddings, every fourth layer with full attention
  int64_t seq_len = 0;          // tokens of an instance
  int64_t window = 0;           // of the sliding layers: half of seq_len, so that it bites
  int64_t tokens_per_step = 0;  // of a whole optimizer step
  int64_t micro_batch = 0;      // instances of one forward and backward pass

  int64_t rows() const { return micro_batch * seq_len; }
  int64_t instances() const { return tokens_per_step / seq_len; }
};

// smoke, nano, 60m, 190m, 190m-2048. 190m is OLMo-core's olmo3_190M; nano and 60m follow its rules.
std::span<const BenchSize> bench_sizes();

// ConfigError naming the option `where` and the sizes there are.
const BenchSize& bench_size(std::string_view name, std::string_view where);

}  // namespace dz::model
