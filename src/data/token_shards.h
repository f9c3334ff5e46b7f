// Token shards: what `tokenize` writes and `train` reads (docs/data.md, "Token shards").
//
// DIR/manifest.json says what there is; DIR/NAME.train-00000.npy, NAME.held-out-00000.npy ... are headerless little-endian unsigned
// integers, uint16 for at most 65,536 ids, uint32 above: .npy by name only, as OLMo-core has it, with the list of documents in .csv.gz
// beside it. The tokens of a source and split are its files joined in order; each document is followed by one EOS. Widths, sizes, hashes and ids are
// checked, so that wrong data stops a run before its first step.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace dz {
class ThreadPool;
}

namespace dz::data {

enum class TokenType : uint8_t { kUint16, kUint32 };
std::string_view name_of(TokenType type);                                     // "uint16", "uint32"
TokenType parse_token_type(std::string_view name, const std::string& where);  // DataError that lists the allowed names
constexpr int64_t size_of(TokenType type) { return type == TokenType::kUint16 ? 2 : 4; }
constexpr TokenType token_type_for(int64_t vocab_size) { return vocab_size <= 65536 ? TokenType::kUint16 : TokenType::kUint32; }

enum class Split : uint8_t { kTrain, kHeldOut };
inline constexpr std::array<Split, 2> kSplits = {Split::kTrain, Split::kHeldOut};
std::string_view name_of(Split split);                               // "train", "held-out"
Split parse_split(std::string_view name, const std::string& where);  // UsageError

inline constexpr int64_t kChunkBytes = int64_t{64} << 20;

struct ShardFile {
  std::string path;  // relative to the directory
  int64_t tokens = 0;
  std::string sha256;
  std::vector<std::string> chunks;  // SHA-256 of each TokenManifest::chunk_bytes; empty in manifests that do not list them
  std::string documents_path;       // csv.gz of the documents, relative to the directory; empty when there is none
  std::string documents_sha256;
  friend bool operator==(const ShardFile&, const ShardFile&) = default;
};

struct Stream {  // one split of one source
  std::vector<ShardFile> files;
  int64_t documents = 0;
  int64_t tokens = 0;  // EOS included
  friend bool operator==(const Stream&, const Stream&) = default;
};

struct Source {
  std::string name;
  std::array<Stream, 2> splits;
  const Stream& stream(Split split) const { return splits[static_cast<size_t>(split)]; }
  Stream& stream(Split split) { return splits[static_cast<size_t>(split)]; }
  friend bool operator==(const Source&, const Source&) = default;
};

struct TokenManifest {
  int64_t vocab_size = 0;
  int64_t eos_id = 0;
  int64_t bos_id = -1;  // in front of each document; -1: none
  TokenType type = TokenType::kUint16;
  int64_t chunk_bytes = kChunkBytes;
  std::string tokenizer_sha256;  // of tokenizer.json; may be empty
  std::vector<Source> sources;
  friend bool operator==(const TokenManifest&, const TokenManifest&) = default;
  int64_t tokens(Split split) const;  // of all sources
  // SHA-256 over width, vocabulary, EOS and the files' hashes by source and split; no path and no name takes part.
  std::string digest() const;
};

std::string to_json(const TokenManifest& manifest);
// DataError naming `where` and the key: missing or wrong keys, unknown dtype, paths that leave the directory, sums that do not fit.
TokenManifest parse_token_manifest(std::string_view json, const std::string& where);
// One line for each thing in which `now` differs from the data that a run was made with; empty when the digests are equal.
std::vector<std::string> differences(const TokenManifest& run, const TokenManifest& now);

// Reads a token directory. Any number of threads may call read().
class TokenShards {
 public:
  // Reads the manifest and compares the size of each file with it. InputError: no directory or no manifest; DataError: anything else.
  explicit TokenShards(const fs::path& directory);

  const TokenManifest& manifest() const { return manifest_; }
  const fs::path& directory() const { return directory_; }

  // SHA-256 of every file and the range of every id; DataError with file, byte offset, found, expected. Damage is narrowed down to the
  // first wrong chunk where chunks are listed. The list of documents is checked too unless somebody removed it.
  void verify(ThreadPool& pool) const;

  // The tokens [first, first + out.size()) of a stream. DataError: file shorter than it should be, or an id outside the vocabulary.
  void read(int64_t source, Split split, int64_t first, std::span<int32_t> out) const;

 private:
  struct Part {
    File file;
    int64_t first = 0;  // of the stream
    int64_t tokens = 0;
    ShardFile entry;
  };
  void check_part(const Part& part) const;
  [[noreturn]] void fail_damaged(const Part& part, const std::string& found) const;

  fs::path directory_;
  TokenManifest manifest_;
  std::map<std::pair<int64_t, Split>, std::vector<Part>> streams_;
};

}  // namespace dz::data
