// Writing tokenizer.json byte for byte as the `tokenizers` library does, so that a hash of the file can be compared.
#include <fmt/format.h>

#include <iterator>

#include "text/splitter.h"
#include "text/trainer.h"

namespace dz::text {
namespace {

// Text outside ASCII stays as it is; control characters by the short escapes where JSON has one, else \u00xx.
void append_string(std::string_view text, std::string& out) {
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

std::string quoted(std::string_view text) {
  std::string out;
  append_string(text, out);
  return out;
}

}  // namespace

std::string to_tokenizer_json(const TrainedVocabulary& vocabulary) {
  std::string out = R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[)";
  for (size_t i = 0; i < vocabulary.special_tokens.size(); ++i) {
    out += fmt::format(R"({}{{"id":{},"content":{},"single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}})",
                       i ? "," : "", i, quoted(vocabulary.special_tokens[i]));
  }
  out += R"(],"normalizer":null,"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":)";
  append_string(regex_of(Pattern::kCl100k), out);
  out += R"(},"behavior":"Removed","invert":true},{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}]},)";
  out += R"("post_processor":null,"decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true},)";
  out += R"("model":{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,"end_of_word_suffix":null,)";
  out += R"("fuse_unk":false,"byte_fallback":false,"ignore_merges":false,"vocab":{)";
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    if (i) out += ',';
    append_string(vocabulary.tokens[i], out);
    fmt::format_to(std::back_inserter(out), ":{}", i);
  }
  out += R"(},"merges":[)";
  for (size_t i = 0; i < vocabulary.merges.size(); ++i) {
    out += i ? ",[" : "[";
    append_string(vocabulary.merges[i].first, out);
    out += ',';
    append_string(vocabulary.merges[i].second, out);
    out += ']';
  }
  out += "]}}";
  return out;
}

}  // namespace dz::text
