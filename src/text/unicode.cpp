#include "text/unicode.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

namespace dz::text {
namespace {

constexpr uint32_t kPlane = 0x10000;

// The basic plane as one byte a code point: nearly all text is there, and a load is cheaper than a search.
using PlaneTable = std::array<CharClass, kPlane>;

void mark(PlaneTable& table, std::span<const CodePointRange> ranges, CharClass value) {
  for (const CodePointRange& range : ranges)
    for (uint32_t c = range.first; c <= range.last && c < kPlane; ++c) table[c] = value;
}

std::unique_ptr<const PlaneTable> make_plane() {
  auto table = std::make_unique<PlaneTable>();
  table->fill(CharClass::kOther);
  mark(*table, letter_ranges(), CharClass::kLetter);
  mark(*table, number_ranges(), CharClass::kNumber);
  mark(*table, space_ranges(), CharClass::kSpace);
  return table;
}

const std::unique_ptr<const PlaneTable> kBasicPlane = make_plane();

bool contains(std::span<const CodePointRange> ranges, uint32_t code_point) {
  const auto after =
      std::upper_bound(ranges.begin(), ranges.end(), code_point, [](uint32_t c, const CodePointRange& range) { return c < range.first; });
  return after != ranges.begin() && code_point <= std::prev(after)->last;
}

const CodePointSet& words() {
  static const CodePointSet set(word_ranges());
  return set;
}

const CodePointSet& numerics() {
  static const CodePointSet set(numeric_ranges());
  return set;
}

constexpr bool is_continuation(unsigned char byte) { return (byte & 0xC0) == 0x80; }

// What may follow a lead byte (Unicode 16, table 3-7): the narrowed second byte keeps out overlong forms, surrogates and > U+10FFFF.
struct Lead {
  uint32_t size;
  unsigned char second_first;
  unsigned char second_last;
};

constexpr Lead lead_of(unsigned char byte) {
  if (byte >= 0xC2 && byte <= 0xDF) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte >= 0xF1 && byte <= 0xF3) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {1, 1, 0};
}

}  // namespace

CharClass char_class(uint32_t code_point) {
  if (code_point < kPlane) return (*kBasicPlane)[code_point];
  if (contains(letter_ranges(), code_point)) return CharClass::kLetter;
  if (contains(number_ranges(), code_point)) return CharClass::kNumber;
  return CharClass::kOther;
}

bool is_word(uint32_t code_point) { return words().contains(code_point); }
bool is_numeric(uint32_t code_point) { return numerics().contains(code_point); }

CodePointSet::CodePointSet(std::span<const CodePointRange> ranges) : ranges_(ranges), basic_plane_(kPlane) {
  for (const CodePointRange& range : ranges)
    for (uint32_t c = range.first; c <= range.last && c < kPlane; ++c) basic_plane_[c] = true;
}

bool CodePointSet::contains(uint32_t code_point) const {
  return code_point < kPlane ? basic_plane_[code_point] : dz::text::contains(ranges_, code_point);
}

CodePoint decode_utf8(std::string_view text, size_t position) {
  const auto byte_at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte_at(position);
  if (first < 0x80) return {first, 1};
  const Lead lead = lead_of(first);
  const size_t left = text.size() - position;
  if (lead.size == 1 || left < 2 || byte_at(position + 1) < lead.second_first || byte_at(position + 1) > lead.second_last) return {kInvalid, 1};
  uint32_t value = first & (0x7Fu >> lead.size);
  value = value << 6 | (byte_at(position + 1) & 0x3Fu);
  for (uint32_t i = 2; i < lead.size; ++i) {
    if (i >= left || !is_continuation(byte_at(position + i))) return {kInvalid, i};
    value = value << 6 | (byte_at(position + i) & 0x3Fu);
  }
  return {value, lead.size};
}

size_t previous_char(std::string_view text, size_t end) {
  for (size_t size = 1; size <= 4 && size <= end; ++size) {
    const CodePoint c = decode_utf8(text.substr(0, end), end - size);
    if (c.value != kInvalid && c.size == size) return end - size;
  }
  return end - 1;
}

void append_utf8(uint32_t code_point, std::string& out) {
  const auto add = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (code_point < 0x80) return add(code_point);
  if (code_point < 0x800) {
    add(0xC0 | code_point >> 6);
  } else {
    if (code_point < 0x10000) {
      add(0xE0 | code_point >> 12);
    } else {
      add(0xF0 | code_point >> 18);
      add(0x80 | (code_point >> 12 & 0x3F));
    }
    add(0x80 | (code_point >> 6 & 0x3F));
  }
  add(0x80 | (code_point & 0x3F));
}

namespace {

// Where the first ill-formed part begins; the size of the text when there is none.
size_t first_invalid(std::string_view text) {
  size_t position = 0;
  while (position < text.size()) {
    uint64_t word;
    if (position + sizeof word <= text.size()) {
      std::memcpy(&word, text.data() + position, sizeof word);
      if ((word & 0x8080808080808080u) == 0) {
        position += sizeof word;
        continue;
      }
    }
    const CodePoint c = decode_utf8(text, position);
    if (c.value == kInvalid) break;
    position += c.size;
  }
  return position;
}

}  // namespace

bool is_valid_utf8(std::string_view text) { return first_invalid(text) == text.size(); }

int64_t replace_invalid_utf8(std::string& text) {
  size_t position = first_invalid(text);
  if (position == text.size()) return 0;  // valid text, the usual case, is only read
  std::string fixed = text.substr(0, position);
  int64_t replaced = 0;
  while (position < text.size()) {
    const CodePoint c = decode_utf8(text, position);
    if (c.value == kInvalid) {
      fixed += "\xEF\xBF\xBD";
      ++replaced;
    } else {
      fixed.append(text, position, c.size);
    }
    position += c.size;
  }
  text = std::move(fixed);
  return replaced;
}

}  // namespace dz::text
