// Any bytes as a text, through small tokenizers of several kinds: ids give the bytes back, and caches and offsets agree with a fresh encoder.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "fuzz/fuzz.h"
#include "text/tokenizer.h"

namespace {

using dz::text::Encoder;
using dz::text::Span;
using dz::text::SpecialTokens;
using dz::text::Tokenizer;

// All 256 bytes by their spelling, a few merges, a special token; `pre_tokenizer` is the part of that name.
Tokenizer make(const std::string& pre_tokenizer) {
  std::string vocabulary;
  int id = 0;
  const auto add = [&](const std::string& token) {
    if (id > 0) vocabulary += ", ";
    vocabulary += '"' + token + "\": " + std::to_string(id);
    ++id;
  };
  int moved = 0;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    const int c = printable ? byte : 256 + moved++;
    if (c == '"' || c == '\\')
      add(std::string("\\") + static_cast<char>(c));
    else if (c < 128)
      add(std::string(1, static_cast<char>(c)));
    else
      add({static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 63))});
  }
  for (const char* token : {"th", "the", "aa", "aaaa", "\u0120t"}) add(token);
  return Tokenizer::parse(R"({"version": "1.0", "added_tokens": [{"id": 261, "content": "<s>", "special": true}], "pre_tokenizer": )" +
                              pre_tokenizer + R"(, "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": {)" + vocabulary +
                              R"(}, "merges": ["t h", "th e", "a a", "aa aa", "\u0120 t"]}})",
                          "fuzz");
}

std::string split(const std::string& pattern) {
  return R"({"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": ")" + pattern +
         R"("}, "behavior": "Isolated", "invert": false}, {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})";
}

void check(const Tokenizer& tokenizer, Encoder& encoder, std::string_view text) {
  std::vector<int32_t> ids;
  std::vector<Span> spans;
  encoder.encode(text, SpecialTokens::kLiteral, ids, spans);
  if (tokenizer.decode_bytes(ids) != text || ids != tokenizer.encode_ordinary(text)) std::abort();
  int64_t end = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (spans[i].begin != end || text.substr(static_cast<size_t>(end), static_cast<size_t>(spans[i].end - end)) != tokenizer.token_bytes(ids[i]))
      std::abort();
    end = spans[i].end;
  }
  if (end != static_cast<int64_t>(text.size())) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Tokenizer kTokenizers[] = {
      make(split(
          R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+)")),
      make(R"({"type": "ByteLevel", "add_prefix_space": false})"), make(split(R"(\\p{N}|[^\\s\\p{L}]+|\\s+(?!\\S))"))};
  static Encoder encoders[] = {Encoder(kTokenizers[0]), Encoder(kTokenizers[1]), Encoder(kTokenizers[2])};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (size_t i = 0; i < std::size(encoders); ++i) check(kTokenizers[i], encoders[i], text);
  ++dz::fuzz::accepted;
  return 0;
}
