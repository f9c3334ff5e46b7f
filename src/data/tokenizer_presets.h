// The tokenizers of released OLMo data by name: what a headerless file cannot say about its tokens (OLMo-core: data/tokenizer.py).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/token_store.h"

namespace dz::data {

struct TokenizerPreset {
  std::string_view name;        // "dolma2"
  std::string_view identifier;  // "allenai/dolma2-tokenizer", as mixes and configurations have it
  Vocabulary vocabulary;
  TokenType type() const { return token_type_for(vocabulary.size); }
};

// By name or identifier; nothing for any other.
std::optional<TokenizerPreset> tokenizer_preset(std::string_view name);
std::vector<std::string> tokenizer_preset_names();

}  // namespace dz::data
