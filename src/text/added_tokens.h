// Tokens that are found in a text before anything else happens to it: "<|endoftext|>" and its like. Internal to this room.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/bpe.h"

namespace dz::text {

struct AddedToken {
  std::string content;
  std::string text;  // what is looked for, and decoded: the content, normalised for `normalized`
  int32_t id = 0;
  bool special = false;
  bool normalized = false;   // looked for behind the normaliser, not before it
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;       // and behind it
};

// Finds the leftmost added token in a text, of those that start there the longest: a trie, walked from each byte that begins a token.
class AddedMatcher {
 public:
  AddedMatcher() { first_.fill(-1); }
  // An empty text is never found; of two equal ones the first counts.
  void add(const AddedToken& token);

  struct Match {
    size_t begin;
    size_t end;
    const AddedToken* token;
  };
  std::optional<Match> find(std::string_view text, size_t from) const;
  bool empty() const { return tokens_.empty(); }

 private:
  int32_t child(int32_t node, unsigned char byte);  // made when missing

  std::vector<AddedToken> tokens_;
  std::array<int32_t, 256> first_;  // byte -> node, -1: no token begins so
  MergeTable next_;                 // (node, byte) -> node, as the id of a merge
  std::vector<int32_t> ends_;       // node -> index of the token that ends here, or -1
};

// Cuts `text` into added tokens and what is between them, in order: calls found(begin, end, token) and ordinary(begin, end). Both tile the
// text, but for the odd case of the library that `rstrip` takes white space in which another token begins: that one comes again.
// A special token that is to be `literal` ends the search where it stands, as in the library, and stays text.
template <class Ordinary, class Found>
void cut_at_added(const AddedMatcher& matcher, std::string_view text, bool literal, Ordinary&& ordinary, Found&& found);

// White space that was looked at: tokens that are white space themselves would walk it again and again.
struct SpaceRun {
  size_t begin = 1;
  size_t end = 0;
};

// What the flags say of a match in `text`: nothing when it is no single word, else with the white space it takes; `taken`: the end of the last one.
std::optional<AddedMatcher::Match> apply_flags(AddedMatcher::Match match, std::string_view text, size_t taken, SpaceRun& spaces);

template <class Ordinary, class Found>
void cut_at_added(const AddedMatcher& matcher, std::string_view text, bool literal, Ordinary&& ordinary, Found&& found) {
  size_t begin = 0;
  size_t from = 0;
  SpaceRun spaces;
  while (const auto raw = matcher.find(text, from)) {
    from = raw->end;
    if (literal && raw->token->special) continue;
    const auto match = apply_flags(*raw, text, begin, spaces);
    if (!match) continue;
    if (begin < match->begin) ordinary(begin, match->begin);
    if (match->begin < match->end) found(match->begin, match->end, *match->token);  // else the one before took all of it
    begin = match->end;
  }
  if (begin < text.size()) ordinary(begin, text.size());
}

}  // namespace dz::text
