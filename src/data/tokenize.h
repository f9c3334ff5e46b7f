// Text to token shards: which document goes to which split, who encodes it, in which order it is written.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "data/token_shards.h"
#include "text/extract.h"
#include "text/tokenizer.h"

namespace dz::data {

struct TextSource {
  std::string name;
  std::vector<fs::path> paths;
};

struct TokenizeSettings {
  double held_out = 0;  // share of the documents, in [0, 1)
  int threads = 1;
  std::string tokenizer_json;  // the file's text, kept beside the shards; may be empty
  text::ExtractOptions extract;
};

struct TokenizeCounts {
  std::string name;
  text::ExtractCounts text;
  std::array<int64_t, 2> documents{};       // by split
  std::array<int64_t, 2> tokens{};          // EOS included
  int64_t documents_with_special_text = 0;  // "<|endoftext|>" and its like, spelled out in the text and encoded as text
};

struct TokenizeResult {
  TokenManifest manifest;
  std::vector<TokenizeCounts> sources;  // as given
};

// A document is held out when this hash (XXH3-64 of its text under a fixed seed, upper 53 bits) is below share * 2^53. That depends on
// the text alone, so that equal documents are on the same side whatever their source, order or file.
uint64_t held_out_hash(std::string_view document);
bool is_held_out(uint64_t hash, double share);

// Writes `directory` through TokenShardWriter: the documents of each source in the order of DocumentReader, special tokens taken
// literally, EOS (<|endoftext|>) behind each. A source of which the share would hold out nothing gives its document of lowest hash
// instead (unless it has no other), so that its loss can be watched; while such a document waits, others are written before it.
// The bytes do not depend on settings.threads. `progress`: source and bytes of text so far.
// DataError when a source has no document; errors of DocumentReader and TokenShardWriter.
TokenizeResult tokenize(const text::Tokenizer& tokenizer, const std::vector<TextSource>& sources, const fs::path& directory,
                        const TokenizeSettings& settings, const std::function<void(const std::string&, int64_t)>& progress = nullptr);

}  // namespace dz::data
