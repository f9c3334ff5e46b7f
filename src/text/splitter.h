// Pre-tokenizer patterns, written out by hand: a regular expression engine of this machine would bring its own Unicode version,
// and back-tracking would make the time depend on the text.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace dz::text {

enum class Pattern {
  kGpt2,    // 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  kCl100k,  // (?i:'s|...)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
};

// The spelling of the pattern in tokenizer.json, and back; nothing for an expression that we do not know.
std::string_view regex_of(Pattern pattern);
std::optional<Pattern> pattern_of(std::string_view regex);

// End of the piece that starts at `begin` (< text.size()). Pieces cover the text without a gap; the end of `text` counts as its end
// for the look-ahead. Linear in the length of the piece, but for white space: its run is looked at once more by the next call.
size_t piece_end(Pattern pattern, std::string_view text, size_t begin);

}  // namespace dz::text
