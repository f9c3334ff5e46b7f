// Text to token shards: which document goes to which split, who encodes it, in which order it is written, and how an attempt goes on that
// was cut off.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "data/held_out.h"
#include "data/token_shards.h"
#include "text/corpus.h"
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
  text::SpecialTokens special = text::SpecialTokens::kLiteral;
  std::optional<int32_t> eos;  // behind each document; <|endoftext|> unless given
  std::optional<int32_t> bos;  // in front of each; none unless given
  int64_t shard_tokens = int64_t{64} << 20;
  bool whole_documents = false;             // see TokenShardWriter
  int64_t batch_bytes = text::kBatchBytes;  // of text between two chances to commit; three batches are in memory
  double commit_seconds = 10;               // at least, between two commits
};

struct TokenizeCounts {
  std::string name;
  text::ExtractCounts text;
  std::array<int64_t, 2> documents{};       // by split
  std::array<int64_t, 2> tokens{};          // BOS and EOS included
  int64_t documents_with_special_text = 0;  // "<|endoftext|>" and its like, spelled out in the text
  int64_t documents_with_eos_text = 0;      // those of them that spell out the EOS token
};

struct TokenizeResult {
  TokenManifest manifest;
  std::vector<TokenizeCounts> sources;  // as given
};

struct TokenizeProgress {
  std::string_view source;
  int64_t text_bytes = 0;         // so far, of all sources, earlier attempts included
  int64_t input_bytes = 0;        // on disk, likewise
  int64_t input_bytes_total = 0;  // of all sources
};

struct TokenizeHooks {
  std::function<void(const TokenizeProgress&)> progress;  // after each batch that is written, and once where an attempt goes on
  std::function<void(const std::string&)> notice;         // what became of an interrupted attempt
};

// Writes `directory` through TokenShardWriter: the documents of each source in the order of DocumentReader, EOS behind each, held out as
// HeldOutChooser says; while a document waits there, others are written before it. The bytes depend on neither threads nor batches nor on
// how often the attempt was cut off: called again after a kill at any moment with the same tokenizer, settings and files (path, size,
// time) it goes on behind the last commit. Memory: three batches, whatever the size of the input (and the list of its files).
// DataError when a source has no document; errors of DocumentReader and TokenShardWriter.
TokenizeResult tokenize(const text::Tokenizer& tokenizer, const std::vector<TextSource>& sources, const fs::path& directory,
                        const TokenizeSettings& settings, const TokenizeHooks& hooks = {});

}  // namespace dz::data
