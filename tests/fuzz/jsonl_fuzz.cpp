// Any bytes as lines for encode and decode --jsonl: each line gives one line of JSON or an error of data.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "fuzz/fuzz.h"
#include "text/id_lines.h"

namespace {

const dz::text::Tokenizer& tokenizer() {
  // One letter; other bytes are dropped. What matters here is the lines.
  static const dz::text::Tokenizer loaded = dz::text::Tokenizer::parse(
      R"({"version": "1.0", "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": true}, "normalizer": {"type": "NFC"}, "decoder": {"type": "ByteLevel"},
          "added_tokens": [{"id": 1, "content": "<s>", "special": true, "rstrip": true}], "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})",
      "fuzz");
  return loaded;
}

void one_line(const std::string& output) {
  if (output.empty() || output.back() != '\n' || output.find('\n') != output.size() - 1) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  static dz::text::LineEncoder encoder(tokenizer(), {.offsets = true});
  std::string output;
  const dz::text::Sink sink = [&](std::string_view part) { output += part; };
  try {
    encoder.encode(line, "line", sink);
    one_line(output);
    ++dz::fuzz::accepted;
  } catch (const dz::Error&) {
  }
  output.clear();
  try {
    dz::text::decode_line(tokenizer(), false, line, "line", sink);
    one_line(output);
    ++dz::fuzz::accepted;
  } catch (const dz::Error&) {
  }
  try {
    dz::text::parse_ids(line, "line");
    ++dz::fuzz::accepted;
  } catch (const dz::Error&) {
  }
  return 0;
}
