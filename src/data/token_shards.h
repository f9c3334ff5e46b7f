// Token shards: what `tokenize` writes and `train` reads (docs/data.md, "Token shards").
//
// DIR/manifest.json says what there is; DIR/NAME.train-00000.bin, NAME.held-out-00000.bin ... are headerless little-endian unsigned
// integers, uint16 for at most 65,536 ids, uint32 above. The tokens of a source and split are its files joined in order; each document is
// followed by one EOS. Widths, sizes, hashes and ids are checked, so that wrong data stops a run before its first step.
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

struct ShardFile {
  std::string path;  // relative to the directory
  int64_t tokens = 0;
  std::string sha256;
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
  TokenType type = TokenType::kUint16;
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

// Writes a token directory: shards under DIR/.partial first, then moved into place, manifest.json last. A directory without a manifest is
// incomplete by definition and refused by readers; running again over an old result or over a killed attempt is safe.
class TokenShardWriter {
 public:
  struct Settings {
    int64_t vocab_size = 0;  // at most 2^31
    int64_t eos_id = 0;
    std::string tokenizer_sha256;
    std::string tokenizer_json;                // kept as DIR/tokenizer.json, so that shards and checkpoints carry their tokenizer; may be empty
    int64_t shard_tokens = int64_t{64} << 20;  // a longer document continues in the next shard
  };
  // CreateError when `directory` holds something that is not a token directory, or cannot be written.
  TokenShardWriter(const fs::path& directory, const Settings& settings);
  ~TokenShardWriter();  // without finish(): removes what was written
  TokenShardWriter(const TokenShardWriter&) = delete;
  TokenShardWriter& operator=(const TokenShardWriter&) = delete;

  // One document, without BOS or EOS; one EOS is added unless the document ends with it. An empty document adds nothing.
  // Sources keep the order of their first document. DataError: an id outside [0, vocab_size) or an unusable source name.
  void append(std::string_view source, Split split, std::span<const int32_t> ids);
  TokenManifest finish();

 private:
  struct Open;
  Open& open(std::string_view source, Split split);
  void put(Open& out, int32_t id);
  void flush(Open& out, bool end_of_shard);

  fs::path directory_, partial_;
  Settings settings_;
  TokenManifest manifest_;
  std::map<std::pair<size_t, size_t>, std::unique_ptr<Open>> open_;
  bool moving_ = false;
};

// Reads a token directory. Any number of threads may call read().
class TokenShards {
 public:
  // Reads the manifest and compares the size of each file with it. InputError: no directory or no manifest; DataError: anything else.
  explicit TokenShards(const fs::path& directory);

  const TokenManifest& manifest() const { return manifest_; }
  const fs::path& directory() const { return directory_; }

  // SHA-256 of every file and the range of every id; DataError with file, byte offset, found, expected.
  void verify(ThreadPool& pool) const;

  // The tokens [first, first + out.size()) of a stream. DataError: file shorter than it should be, or an id outside the vocabulary.
  void read(int64_t source, Split split, int64_t first, std::span<int32_t> out) const;

 private:
  struct Part {
    File file;
    int64_t first = 0;  // of the stream
    int64_t tokens = 0;
    std::string sha256;
  };
  void check_part(const Part& part) const;

  fs::path directory_;
  TokenManifest manifest_;
  std::map<std::pair<int64_t, Split>, std::vector<Part>> streams_;
};

}  // namespace dz::data
