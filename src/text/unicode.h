// UTF-8 and the three character classes that pre-tokenizer patterns ask for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dz::text {

// \p{L}, \p{N} and \s of Unicode 16 as the regex engine of the `tokenizers` library has them; everything else is kOther.
enum class CharClass : uint8_t { kOther, kLetter, kNumber, kSpace };

struct CodePointRange {
  uint32_t first;
  uint32_t last;  // inclusive
};

// A set of ranges with a bit for each code point of the basic plane, where nearly all text is.
class CodePointSet {
 public:
  explicit CodePointSet(std::span<const CodePointRange> ranges);
  bool contains(uint32_t code_point) const;

 private:
  std::span<const CodePointRange> ranges_;
  std::vector<bool> basic_plane_;
};

// unicode_tables.cpp, ascending.
std::span<const CodePointRange> letter_ranges();
std::span<const CodePointRange> number_ranges();
std::span<const CodePointRange> space_ranges();
// library_tables.cpp: other sets of the library, some of other Unicode versions.
std::span<const CodePointRange> word_ranges();         // \w where it looks for added tokens that are whole words
std::span<const CodePointRange> numeric_ranges();      // of its pre-tokenizer Digits
std::span<const CodePointRange> nfc_trigger_ranges();  // text/nfc.h
std::span<const CodePointRange> nfc_base_ranges();

CharClass char_class(uint32_t code_point);
bool is_word(uint32_t code_point);
bool is_numeric(uint32_t code_point);

inline constexpr uint32_t kInvalid = 0xFFFFFFFF;

struct CodePoint {
  uint32_t value;  // kInvalid for an ill-formed part
  uint32_t size;   // bytes taken; for an ill-formed part its maximal length (Unicode 16, section 3.9, U+FFFD substitution)
};
// The character at `position` < text.size(). Overlong forms, surrogates and values above U+10FFFF are ill-formed.
CodePoint decode_utf8(std::string_view text, size_t position);

// Where the character that ends at `end` > 0 begins; the last byte alone when no well-formed one ends there.
size_t previous_char(std::string_view text, size_t end);

void append_utf8(uint32_t code_point, std::string& out);

bool is_valid_utf8(std::string_view text);

// Replaces each maximal ill-formed part by U+FFFD, in place; returns how many there were.
int64_t replace_invalid_utf8(std::string& text);

}  // namespace dz::text
