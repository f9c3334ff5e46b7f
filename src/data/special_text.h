// Texts in which a special token is spelled out. Internal to this room.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace dz::data {

class SpecialText {
 public:
  struct Found {
    bool any = false;
    bool eos = false;
  };
  SpecialText(const text::Tokenizer& tokenizer, int32_t eos);

  // Looks at each byte with which a special token begins: in ordinary text there are few.
  Found find(std::string_view document) const;

 private:
  struct Token {
    std::string text;
    bool eos = false;
  };
  std::vector<Token> tokens_;
  std::string first_bytes_;  // of all tokens, each once
};

}  // namespace dz::data
