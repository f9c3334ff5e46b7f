// Whether a model's ids of end-of-text and padding are those of the tokenizer beside it: a copied config with another model's id is a known way to
// train and generate past every document's end (OLMo 1 shipped one).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace dz::model {

// Ids that somebody claims; empty and nothing are not compared.
struct SpecialTokens {
  std::string eos_key, pad_key;  // as the claim calls them: "config.json: eos_token_id"
  std::vector<int32_t> eos;
  std::optional<int32_t> pad;
};

// Of the text of a config.json; nothing where it has none, or is no JSON.
SpecialTokens special_tokens_of_config(const std::string& config_json);

// A sentence for each of eos_token and pad_token that special_tokens_map.json or tokenizer_config.json names, tokenizer.json gives an id, and
// `claimed` gives another. `read` has the text of a file by its name, "" where there is none. Files that are missing or unreadable are nothing to
// compare with.
std::vector<std::string> token_differences(const SpecialTokens& claimed, const std::function<std::string(const std::string& name)>& read);

}  // namespace dz::model
