#include "text/strip.h"

#include "text/unicode.h"

namespace dz::text {
namespace {

// CPython's _PyUnicode_IsWhitespace; tests/golden/tokenizer/python_space.json lists what Python itself says.
bool is_python_space(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

// The start of the character that ends at `end`; in ill-formed text, some byte in front of it that is no space.
size_t last_character(std::string_view text, size_t end) {
  size_t begin = end - 1;
  while (begin > 0 && end - begin < 4 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  return begin;
}

}  // namespace

void strip_like_python(std::string& text) {
  const std::string_view view = text;
  size_t begin = 0;
  while (begin < view.size()) {
    const CodePoint character = decode_utf8(view, begin);
    if (!is_python_space(character.value)) break;
    begin += character.size;
  }
  size_t end = view.size();
  while (end > begin) {
    const size_t start = last_character(view, end);
    const CodePoint character = decode_utf8(view, start);
    if (!is_python_space(character.value) || start + character.size != end) break;
    end = start;
  }
  text.erase(end);
  text.erase(0, begin);
}

}  // namespace dz::text
