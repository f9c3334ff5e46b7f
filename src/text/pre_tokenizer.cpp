#include "text/pre_tokenizer.h"

#include <algorithm>

#include "text/unicode.h"

namespace dz::text {
namespace {

using Part = SplitScratch::Part;

void find_literal(std::string_view literal, std::string_view text, std::vector<TextMatch>& matches) {
  matches.clear();
  for (size_t at = text.find(literal); at != std::string_view::npos; at = text.find(literal, at + literal.size()))
    matches.push_back({at, at + literal.size()});
}

void find_digits(std::string_view text, std::vector<TextMatch>& matches) {
  matches.clear();
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = decode_utf8(text, i);
    if (c.value != kInvalid && is_numeric(c.value)) matches.push_back({i, i + c.size});
    i += c.size;
  }
}

void find_pieces(Pattern pattern, std::string_view text, std::vector<TextMatch>& matches) {
  matches.clear();
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = piece_end(pattern, text, begin);
    matches.push_back({begin, end});
    begin = end;
  }
}

// Matches and what is between them. Empty matches stay: two of the behaviours look at the order of matches and others.
void find_parts(const SplitStep& step, std::string_view text, SplitScratch& scratch) {
  if (step.pattern) find_pieces(*step.pattern, text, scratch.matches);
  if (step.regex) step.regex->find_all(text, scratch.matches);
  if (!step.literal.empty()) find_literal(step.literal, text, scratch.matches);
  if (step.digits) find_digits(text, scratch.matches);
  scratch.parts.clear();
  size_t done = 0;
  for (const TextMatch& match : scratch.matches) {
    if (done != match.begin) scratch.parts.push_back({done, match.begin, step.invert});
    scratch.parts.push_back({match.begin, match.end, !step.invert});
    done = match.end;
  }
  if (done != text.size()) scratch.parts.push_back({done, text.size(), step.invert});
}

// The library's rules, each a walk that looks at the part before: `joins` tells when a part is put to it.
template <class Iterator, class Joins>
void merge(Iterator begin, Iterator end, std::vector<Part>& out, Joins&& joins) {
  bool before = false;
  for (; begin != end; ++begin) {
    if (joins(before, begin->match) && !out.empty()) {
      out.back().begin = std::min(out.back().begin, begin->begin);
      out.back().end = std::max(out.back().end, begin->end);
    } else {
      out.push_back(*begin);
    }
    before = begin->match;
  }
}

void apply_behavior(SplitBehavior behavior, std::vector<Part>& parts) {
  const auto behind_other = [](bool before, bool match) { return match && !before; };
  std::vector<Part> out;
  switch (behavior) {
    case SplitBehavior::kIsolated:
      return;
    case SplitBehavior::kRemoved:
      std::erase_if(parts, [](const Part& part) { return part.match; });
      return;
    case SplitBehavior::kContiguous:
      merge(parts.begin(), parts.end(), out, [](bool before, bool match) { return match == before; });
      break;
    case SplitBehavior::kMergedWithPrevious:
      merge(parts.begin(), parts.end(), out, behind_other);
      break;
    case SplitBehavior::kMergedWithNext:
      merge(parts.rbegin(), parts.rend(), out, behind_other);
      std::reverse(out.begin(), out.end());
      break;
  }
  parts = std::move(out);
}

}  // namespace

std::optional<Pattern> PreTokenizer::plain() const {
  if (prefix_space) return std::nullopt;
  if (steps.empty()) return last;
  if (steps.size() > 1 || last || !steps[0].pattern) return std::nullopt;
  // The patterns match every character, so of the parts each is a match: kept, or, inverted, not removed.
  const SplitStep& step = steps[0];
  const bool kept = step.behavior == SplitBehavior::kIsolated || (step.behavior == SplitBehavior::kRemoved && step.invert);
  return kept ? step.pattern : std::nullopt;
}

void split_text(const PreTokenizer& pre_tokenizer, std::string_view text, SplitScratch& scratch) {
  scratch.now.assign(1, {0, text.size()});
  for (const SplitStep& step : pre_tokenizer.steps) {
    scratch.next.clear();
    for (const TextMatch& piece : scratch.now) {
      find_parts(step, text.substr(piece.begin, piece.end - piece.begin), scratch);
      apply_behavior(step.behavior, scratch.parts);
      for (const Part& part : scratch.parts)
        if (part.begin < part.end) scratch.next.push_back({piece.begin + part.begin, piece.begin + part.end});
    }
    std::swap(scratch.now, scratch.next);
  }
}

}  // namespace dz::text
