// One token file that grows: its ids, the rows of its documents, and their hashes. Internal to this room.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "data/document_rows.h"
#include "data/token_shards.h"

namespace dz::data {

// A SHA-256 of a whole stream and one of each chunk of it.
class ChunkedHash {
 public:
  explicit ChunkedHash(int64_t chunk_bytes);
  void update(std::span<const std::byte> bytes);
  // Ends both.
  std::string hex();
  std::vector<std::string> chunks();

 private:
  int64_t chunk_bytes_, in_chunk_ = 0;
  Sha256 whole_;
  std::unique_ptr<Sha256> chunk_;
  std::vector<std::string> done_;
};

// An XXH3-128 of what was written so far, which can be asked for at any time.
class RunningHash {
 public:
  RunningHash();
  ~RunningHash();
  void update(std::span<const std::byte> bytes);
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// DataError naming the file when its SHA-256 is not this one; InputError when there is none.
void check_sha256(const fs::path& path, const std::string& expected);

// STEM.npy and STEM.csv in a directory; close() adds STEM.csv.gz. All errors are IoError or CreateError with the path, but for those below.
class ShardOutput {
 public:
  struct Place {
    fs::path directory;
    std::string stem;
    TokenType type = TokenType::kUint16;
    int64_t chunk_bytes = 0;
  };
  explicit ShardOutput(Place place);
  // What an earlier sync() left: tokens, bytes of rows, and hex() of the hashes of both.
  struct Synced {
    int64_t tokens = 0, row_bytes = 0;
    std::string tokens_hash, rows_hash;
  };
  // Goes on behind it; what lies behind is cut off. DataError when there is less or something else, InputError when there is nothing.
  ShardOutput(Place place, const Synced& synced);

  int64_t tokens() const { return tokens_; }
  void put(std::span<const int32_t> ids);
  void put_row(int64_t start, int64_t end, const DocumentOrigin& origin);
  Synced sync();  // all that was put is on the disk
  // The entry for the manifest. STEM.csv stays for whoever goes on from an earlier sync().
  ShardFile close();
  fs::path rows_path() const { return place_.directory / (place_.stem + ".csv"); }

 private:
  fs::path tokens_path() const { return place_.directory / (place_.stem + ".npy"); }
  void flush();

  Place place_;
  int64_t tokens_ = 0, row_bytes_ = 0;
  ChunkedHash hash_;
  RunningHash tokens_hash_, rows_hash_;
  std::vector<std::byte> buffer_;
  std::string row_buffer_;
  File file_, rows_;
};

}  // namespace dz::data
