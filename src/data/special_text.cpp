#include "data/special_text.h"

namespace dz::data {

SpecialText::SpecialText(const text::Tokenizer& tokenizer, int32_t eos) {
  for (const std::string& text : tokenizer.special_tokens()) {
    if (text.empty()) continue;
    tokens_.push_back({.text = text, .eos = tokenizer.find_added(text) == eos});
    if (first_bytes_.find(text.front()) == std::string::npos) first_bytes_ += text.front();
  }
}

SpecialText::Found SpecialText::find(std::string_view document) const {
  Found found;
  for (const char byte : first_bytes_) {
    for (size_t at = document.find(byte); at != std::string_view::npos; at = document.find(byte, at + 1)) {
      for (const Token& token : tokens_) {
        if (document.substr(at, token.text.size()) != token.text) continue;
        found.any = true;
        found.eos |= token.eos;
      }
      if (found.eos) return found;
    }
  }
  return found;
}

}  // namespace dz::data
