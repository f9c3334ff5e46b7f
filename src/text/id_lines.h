// JSON lines of texts to JSON lines of ids, and back: what other programs compare tokenizers through.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "text/tokenizer.h"

namespace dz::text {

struct EncodeLinesOptions {
  SpecialTokens special = SpecialTokens::kParsed;
  bool offsets = false;         // [begin, end) of each token in bytes of the text, or of the bytes that bytes_hex spells
  bool special_around = false;  // the post-processor's template
};

using Sink = std::function<void(std::string_view)>;

// Lines {"text": ".."} or {"bytes_hex": ".."}; other keys are ignored. Gives {"ids": [..]} and, when asked for, "offsets": [[b, e], ..].
// Bytes that are no UTF-8 become U+FFFD, one for each maximal ill-formed part. DataError naming `where`.
class LineEncoder {
 public:
  LineEncoder(const Tokenizer& tokenizer, EncodeLinesOptions options);
  ~LineEncoder();
  // How many parts of "text" were ill-formed and became U+FFFD.
  int64_t encode(std::string_view line, const std::string& where, const Sink& sink);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A line {"ids": [..]} to a line {"text": ".."}; DataError naming `where`.
void decode_line(const Tokenizer& tokenizer, bool skip_special, std::string_view line, const std::string& where, const Sink& sink);

// The ids of a line: {"ids": [..]}, or whole numbers with blanks or commas between them. DataError naming `where`: anything else.
std::vector<int32_t> parse_ids(std::string_view line, const std::string& where);

// The sequences of a file, one a line; blank lines are none. InputError, IoError, DataError naming the line.
std::vector<std::vector<int32_t>> read_id_lines(const fs::path& path);

// Calls `each` for the lines of `file` that are not blank, less a byte order mark at its beginning, with "name:line". IoError; DataError for a line
// above 1 GiB.
void for_each_line(std::FILE* file, const std::string& name, const std::function<void(std::string_view, const std::string&)>& each);

}  // namespace dz::text
