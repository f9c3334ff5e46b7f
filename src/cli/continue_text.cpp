#include "cli/continue_text.h"

#include <algorithm>

#include "base/error.h"
#include "numerics/rope.h"

namespace dz::cli {
namespace {

template <class T>
std::vector<int32_t> tokens_after(const model::ModelConfig& config, const model::Parameters& parameters, std::span<const int32_t> prompt,
                                  const ContinueSettings& settings, std::span<const int32_t> stop, ThreadPool& pool) {
  model::Decoder<T> decoder(config, static_cast<int64_t>(prompt.size()) + settings.max_tokens, pool);
  decoder.set_weights(parameters);
  return model::generate<T>(decoder, prompt, settings.max_tokens, settings.sampling, stop);
}

}  // namespace

std::string continue_text(const model::ModelConfig& config, const model::Parameters& parameters, const text::Tokenizer& tokenizer,
                          const std::string& prompt, const ContinueSettings& settings, ThreadPool& pool) {
  model::validate(settings.sampling);
  if (tokenizer.vocab_size() > config.vocab_size) {
    throw ConfigError(Complaint{"tokenizer", std::to_string(tokenizer.vocab_size()) + " tokens",
                                "at most the model's vocab_size, " + std::to_string(config.vocab_size), "the tokenizer is that of another model"});
  }
  std::vector<int32_t> stop = config.eos_token_ids;
  const std::optional<int32_t> end_of_text = tokenizer.find_added("<|endoftext|>");
  if (end_of_text) stop.push_back(*end_of_text);
  std::vector<int32_t> tokens = tokenizer.encode(prompt);
  if (tokens.empty()) tokens.push_back(tokenizer.end_of_text());
  if (static_cast<int64_t>(tokens.size()) > numerics::kMaxPositions - settings.max_tokens) {
    throw ConfigError(Complaint{"prompt", std::to_string(tokens.size()) + " tokens",
                                "at most " + std::to_string(numerics::kMaxPositions) + " with what follows", ""});
  }
  const std::vector<int32_t> after = settings.dtype == "fp32" ? tokens_after<float>(config, parameters, tokens, settings, stop, pool)
                                                              : tokens_after<bf16>(config, parameters, tokens, settings, stop, pool);
  for (const int32_t token : after) {
    if (std::ranges::find(stop, token) == stop.end()) tokens.push_back(token);
  }
  return tokenizer.decode(prompt.empty() ? std::span<const int32_t>(tokens).subspan(1) : std::span<const int32_t>(tokens));
}

}  // namespace dz::cli
