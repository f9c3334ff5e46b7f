// An index of token files: which file and which token an instance starts at, with sums, sizes and a fingerprint that are checked whenever it is
// read. Two formats: ours, which can cover the contents, and MaxText's, byte for byte (docs/data.md, "Indexes and fingerprints").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/token_store.h"

namespace dz::data {

struct IndexedFile {
  std::string path;
  std::string label;
  int64_t tokens = 0;
  int64_t instances = 0;  // tokens / sequence_length; the rest is in no instance
  int64_t offset = 0;     // first instance
  int64_t bytes = -1;     // of the file; -1: not recorded (MaxText)
  std::optional<std::string> sha256;
};

struct TokenIndex {
  int64_t sequence_length = 0;
  TokenType type = TokenType::kUint32;
  std::string tokenizer;  // an identifier; may be empty
  Vocabulary vocabulary;  // size 0: not recorded (MaxText)
  std::vector<IndexedFile> files;
  int64_t total_instances() const;
  int64_t total_tokens() const;  // tails included
};

struct IndexPlace {
  int64_t file = 0;
  int64_t token = 0;
};
IndexPlace find_instance(const TokenIndex& index, int64_t instance);  // 0 <= instance < total_instances()

// The entries of a store; `hashes` has one (or nothing) for each, or is empty. ConfigError: a length that is not positive.
TokenIndex make_index(const TokenStore& store, int64_t sequence_length, const std::string& tokenizer,
                      const std::vector<std::optional<std::string>>& hashes);

// SHA-256 over length, dtype, vocabulary, EOS and BOS, and for each file its tokens and its hash. A file that was not hashed counts with its
// size and the last part of its path instead.
std::string index_fingerprint(const TokenIndex& index);

// Either throws DataError for a path, label or tokenizer that is not UTF-8.
std::string index_json(const TokenIndex& index);          // ours, ends with a newline
std::string maxtext_index_json(const TokenIndex& index);  // as MaxText's builder writes it, without one

// Both formats, told by their keys. DataError naming `where` and the key: not such a JSON, another version, wrong types or ranges; instances,
// offsets or totals that do not follow from the tokens; a fingerprint that does not fit.
TokenIndex parse_index(std::string_view json, const std::string& where);

// Whether the files are as they were: present, of the recorded size, with the recorded number of tokens. `base` is put before relative paths.
// InputError or DataError naming the first that is not. Contents are not read.
void check_index_files(const TokenIndex& index, const std::string& base);

}  // namespace dz::data
