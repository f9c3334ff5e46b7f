// From a segment of text to the pieces that are merged each by itself: the steps of tokenizer.json's pre_tokenizer in order. Internal to this room.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/regex.h"
#include "text/splitter.h"

namespace dz::text {

enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// Cuts at what it matches; one of the four is set.
struct SplitStep {
  std::optional<Pattern> pattern;      // by hand
  std::shared_ptr<const Regex> regex;  // by PCRE2
  std::string literal;
  bool digits = false;  // each numeric character is a match
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;  // matches and what is between them change their roles
};

struct PreTokenizer {
  std::vector<SplitStep> steps;
  bool prefix_space = false;    // ByteLevel behind the steps: a space before each piece that has none,
  std::optional<Pattern> last;  // and its own pattern

  // The pattern, when cutting with it is all there is to do; then piece_end is the quick way.
  std::optional<Pattern> plain() const;
};

// Scratch of one thread.
struct SplitScratch {
  struct Part {
    size_t begin;
    size_t end;
    bool match;
  };
  std::vector<TextMatch> matches;
  std::vector<Part> parts;
  std::vector<TextMatch> now;
  std::vector<TextMatch> next;
};

// The pieces of `text` after the steps (not ByteLevel's own part), in scratch.now. Empty ones are left out.
void split_text(const PreTokenizer& pre_tokenizer, std::string_view text, SplitScratch& scratch);

}  // namespace dz::text
