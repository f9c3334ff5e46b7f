// Initial weights by OLMo-core's methods (olmo_core/nn/transformer/init.py; fan_in as in 2.6.0), from our own numbers or from torch's.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/config.h"
#include "model/parameters.h"

namespace dz {
class ThreadPool;
}

namespace dz::model {

enum class InitMethod : uint8_t { kNormal, kNormalized, kFanIn, kLlama, kLlamaDepth };

enum class InitStream : uint8_t {
  kKeyed,        // an element depends on seed, name and index alone (docs/numerics.md, "Randomness"): any thread can make any of them
  kTorch,        // one torch generator for the whole model, as torch 2.12 and later cut a normal: OLMo-core's bits on a CPU
  kTorchErfinv,  // as torch 2.11 and earlier cut it: within 2 ulp
};

struct InitSettings {
  InitMethod method = InitMethod::kNormal;
  InitStream stream = InitStream::kKeyed;
  uint64_t seed = 0;
};

// Of one matrix: the deviation, and whether values beyond three of them are drawn anew.
struct InitDeviation {
  double std = 0;
  bool cut = true;
};

// `name` is a matrix of the model or its embedding.
InitDeviation init_deviation(const ModelConfig& config, InitMethod method, std::string_view name);

// Matrices and the embedding as `settings` say, norms 1, biases 0. A tied model has no head to draw.
void init_parameters(const InitSettings& settings, const ModelConfig& config, Parameters& parameters, ThreadPool& pool);

// The default: normal from the keyed stream.
void init_parameters(uint64_t seed, Parameters& parameters, ThreadPool& pool);

}  // namespace dz::model
