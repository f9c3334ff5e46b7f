#include "text/splitter.h"

#include <bit>
#include <cstring>

#include "text/unicode.h"

namespace dz::text {
namespace {

constexpr std::string_view kGpt2Regex = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kCl100kRegex =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr CharClass ascii_class(unsigned char c) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return CharClass::kLetter;
  if (c >= '0' && c <= '9') return CharClass::kNumber;
  if (c == ' ' || (c >= 9 && c <= 13)) return CharClass::kSpace;
  return CharClass::kOther;
}

struct AsciiTable {
  CharClass of[128];
  constexpr AsciiTable() : of() {
    for (int i = 0; i < 128; ++i) of[i] = ascii_class(static_cast<unsigned char>(i));
  }
};
constexpr AsciiTable kAscii;

struct Char {
  CharClass kind;
  uint32_t size;
};

// An ill-formed part is kOther like any symbol: it splits off letters and keeps its bytes.
inline Char char_at(std::string_view text, size_t i) {
  const auto byte = static_cast<unsigned char>(text[i]);
  if (byte < 128) return {kAscii.of[byte], 1};
  const CodePoint c = decode_utf8(text, i);
  return {c.value == kInvalid ? CharClass::kOther : char_class(c.value), c.size};
}

inline size_t run_end(std::string_view text, size_t i, CharClass kind) {
  while (i < text.size()) {
    const Char c = char_at(text, i);
    if (c.kind != kind) break;
    i += c.size;
  }
  return i;
}

inline bool is_ascii_letter(char c) { return static_cast<unsigned char>((c | 0x20) - 'a') < 26; }

// How many of 8 bytes are ASCII letters before the first that is not: no branch, where a loop over bytes mispredicts at each word's end.
inline size_t leading_letters(const char* bytes) {
  constexpr uint64_t kOnes = 0x0101010101010101u;
  constexpr uint64_t kTops = kOnes * 0x80;
  uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  const uint64_t lower = (word | kOnes * 0x20) & ~kTops;
  const uint64_t from_a = lower + kOnes * (0x80 - 'a');        // top bit: at least 'a'
  const uint64_t behind_z = lower + kOnes * (0x80 - 'z' - 1);  // top bit: more than 'z'
  const uint64_t others = (~(from_a & ~behind_z) | word) & kTops;
  return others ? static_cast<size_t>(std::countr_zero(others)) / 8 : 8;
}

size_t letters_end(std::string_view text, size_t i) {
  while (i < text.size()) {
    if (text.size() - i >= 8) {
      const size_t count = leading_letters(text.data() + i);
      i += count;
      if (count == 8) continue;
    }
    const Char c = char_at(text, i);
    if (c.kind != CharClass::kLetter) break;
    i += c.size;
  }
  return i;
}

// Nearly every piece of either pattern is a word of ASCII letters, alone or behind one space; 0 when this one does not begin so.
inline size_t word_end(std::string_view text, size_t begin) {
  const size_t first = begin + (text[begin] == ' ');
  return first < text.size() && is_ascii_letter(text[first]) ? letters_end(text, first + 1) : 0;
}

inline bool is_newline(char c) { return c == '\n' || c == '\r'; }

// The length of a contraction at the apostrophe at `i`, or 0. Case folding maps U+017F (C5 BF) to s, and nothing else to these letters.
size_t contraction(std::string_view text, size_t i, bool fold) {
  const auto letter = [&](size_t at) -> char {
    if (at >= text.size()) return '\0';
    const char c = text[at];
    return fold && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  };
  const char first = letter(i + 1);
  const char second = letter(i + 2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l')) return 3;
  if (fold && text.substr(i + 1, 2) == "\xC5\xBF") return 3;
  return 0;
}

// A run of white space [begin, end): its last character belongs to what follows, unless it is alone or the text ends.
size_t space_end(std::string_view text, size_t begin, size_t end) {
  if (end == text.size()) return end;
  size_t last = begin;
  for (size_t i = begin; i < end; i += char_at(text, i).size) last = i;
  return last > begin ? last : end;
}

size_t gpt2_end(std::string_view text, size_t begin) {
  if (const size_t end = word_end(text, begin)) return end;
  const Char first = char_at(text, begin);
  if (text[begin] == '\'') {
    if (const size_t size = contraction(text, begin, false)) return begin + size;
  }
  if (text[begin] == ' ' && begin + 1 < text.size()) {
    const Char second = char_at(text, begin + 1);
    if (second.kind != CharClass::kSpace) return run_end(text, begin + 1 + second.size, second.kind);
  }
  const size_t end = run_end(text, begin + first.size, first.kind);
  return first.kind == CharClass::kSpace ? space_end(text, begin, end) : end;
}

size_t symbols_end(std::string_view text, size_t i) {
  i = run_end(text, i, CharClass::kOther);
  while (i < text.size() && is_newline(text[i])) ++i;
  return i;
}

size_t digits_end(std::string_view text, size_t i) {
  for (int count = 0; count < 3 && i < text.size(); ++count) {
    const Char c = char_at(text, i);
    if (c.kind != CharClass::kNumber) break;
    i += c.size;
  }
  return i;
}

// White space where no letter follows its first character: up to its last line end, if it has one.
size_t cl100k_space_end(std::string_view text, size_t begin) {
  size_t end = begin;
  size_t behind_newline = 0;
  while (end < text.size()) {
    const Char c = char_at(text, end);
    if (c.kind != CharClass::kSpace) break;
    end += c.size;
    if (is_newline(text[end - 1])) behind_newline = end;
  }
  return behind_newline ? behind_newline : space_end(text, begin, end);
}

// The alternatives in the order of the expression, each reduced to a question about one or two characters.
size_t cl100k_end(std::string_view text, size_t begin) {
  if (const size_t end = word_end(text, begin)) return end;
  const char byte = text[begin];
  if (byte == '\'') {
    if (const size_t size = contraction(text, begin, true)) return begin + size;
  }
  const Char first = char_at(text, begin);
  const size_t second_at = begin + first.size;
  if (first.kind == CharClass::kLetter) return letters_end(text, second_at);
  if (first.kind == CharClass::kNumber) return digits_end(text, begin);
  const bool more = second_at < text.size();
  const Char second = more ? char_at(text, second_at) : Char{CharClass::kSpace, 0};
  if (more && second.kind == CharClass::kLetter && !is_newline(byte)) return letters_end(text, second_at + second.size);
  if (first.kind == CharClass::kOther) return symbols_end(text, second_at);
  if (byte == ' ' && more && second.kind == CharClass::kOther) return symbols_end(text, second_at);
  return cl100k_space_end(text, begin);
}

}  // namespace

std::string_view regex_of(Pattern pattern) { return pattern == Pattern::kGpt2 ? kGpt2Regex : kCl100kRegex; }

std::optional<Pattern> pattern_of(std::string_view regex) {
  for (const Pattern pattern : {Pattern::kGpt2, Pattern::kCl100k})
    if (regex == regex_of(pattern)) return pattern;
  return std::nullopt;
}

size_t piece_end(Pattern pattern, std::string_view text, size_t begin) {
  return pattern == Pattern::kGpt2 ? gpt2_end(text, begin) : cl100k_end(text, begin);
}

}  // namespace dz::text
