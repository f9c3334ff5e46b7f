// Whether config.json and the tokenizer beside it mean the same end-of-text token: a copied config with another model's id is a known way to
// train and generate past every document's end (OLMo 1 shipped one).
#pragma once

#include <string>
#include <vector>

#include "convert/source.h"

namespace dz::convert {

// A sentence for each of eos_token and pad_token that special_tokens_map.json or tokenizer_config.json names, tokenizer.json gives an id, and
// config.json gives another. Files that are missing or unreadable are nothing to compare with.
std::vector<std::string> token_differences(const Source& source);

}  // namespace dz::convert
