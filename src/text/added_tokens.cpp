#include "text/added_tokens.h"

#include <algorithm>

#include "text/unicode.h"

namespace dz::text {
namespace {

bool is_space(uint32_t c) { return c != kInvalid && char_class(c) == CharClass::kSpace; }

bool word_before(std::string_view text, size_t end) {
  if (end == 0) return false;
  const uint32_t c = decode_utf8(text.substr(0, end), previous_char(text, end)).value;
  return c != kInvalid && is_word(c);
}

bool word_behind(std::string_view text, size_t begin) {
  if (begin == text.size()) return false;
  const uint32_t c = decode_utf8(text, begin).value;
  return c != kInvalid && is_word(c);
}

// Not below `taken`.
size_t spaces_before(std::string_view text, size_t end, size_t taken) {
  while (end > taken) {
    const size_t begin = previous_char(text, end);
    if (!is_space(decode_utf8(text.substr(0, end), begin).value)) break;
    end = begin;
  }
  return end;
}

size_t spaces_behind(std::string_view text, size_t begin, SpaceRun& spaces) {
  if (begin >= spaces.begin && begin <= spaces.end) return spaces.end;
  spaces.begin = begin;
  while (begin < text.size()) {
    const CodePoint c = decode_utf8(text, begin);
    if (!is_space(c.value)) break;
    begin += c.size;
  }
  return spaces.end = begin;
}

}  // namespace

int32_t AddedMatcher::child(int32_t node, unsigned char byte) {
  if (const int32_t known = next_.find(node, byte).id; known >= 0) return known;
  const auto made = static_cast<int32_t>(ends_.size());
  ends_.push_back(-1);
  next_.set(node, byte, {.rank = 0, .id = made});
  return made;
}

void AddedMatcher::add(const AddedToken& token) {
  const std::string_view text = token.text;
  if (text.empty()) return;
  int32_t& first = first_[static_cast<unsigned char>(text[0])];
  if (first < 0) {
    first = static_cast<int32_t>(ends_.size());
    ends_.push_back(-1);
  }
  int32_t node = first;
  for (const char c : text.substr(1)) node = child(node, static_cast<unsigned char>(c));
  if (ends_[static_cast<size_t>(node)] >= 0) return;
  ends_[static_cast<size_t>(node)] = static_cast<int32_t>(tokens_.size());
  tokens_.push_back(token);
}

std::optional<AddedMatcher::Match> AddedMatcher::find(std::string_view text, size_t from) const {
  if (empty()) return std::nullopt;
  for (size_t begin = from; begin < text.size(); ++begin) {
    int32_t node = first_[static_cast<unsigned char>(text[begin])];
    int32_t longest = -1;
    size_t end = begin;
    for (size_t i = begin + 1; node >= 0; ++i) {
      if (ends_[static_cast<size_t>(node)] >= 0) {
        longest = ends_[static_cast<size_t>(node)];
        end = i;
      }
      if (i == text.size()) break;
      node = next_.find(node, static_cast<unsigned char>(text[i])).id;
    }
    if (longest >= 0) return Match{begin, end, &tokens_[static_cast<size_t>(longest)]};
  }
  return std::nullopt;
}

std::optional<AddedMatcher::Match> apply_flags(AddedMatcher::Match match, std::string_view text, size_t taken, SpaceRun& spaces) {
  const AddedToken& token = *match.token;
  if (token.single_word && (word_before(text, match.begin) || word_behind(text, match.end))) return std::nullopt;
  if (token.lstrip) match.begin = std::max(spaces_before(text, match.begin, taken), taken);
  if (token.rstrip) match.end = spaces_behind(text, match.end, spaces);
  return match;
}

}  // namespace dz::text
