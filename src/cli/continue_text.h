// Text continued by a model: what `generate` prints and what a landmark keeps as a sample.
#pragma once

#include <string>

#include "model/decode.h"
#include "text/tokenizer.h"

namespace dz::cli {

struct ContinueSettings {
  std::string dtype = "bf16";  // bf16 | fp32
  int64_t max_tokens = 128;
  model::Sampling sampling;
};

// The prompt and what follows it, up to an end-of-text token, which is not shown. An empty prompt stands for the start of a document.
// ConfigError when the tokenizer has more tokens than the model.
std::string continue_text(const model::ModelConfig& config, const model::Parameters& parameters, const text::Tokenizer& tokenizer,
                          const std::string& prompt, const ContinueSettings& settings, ThreadPool& pool);

}  // namespace dz::cli
