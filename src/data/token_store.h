// Tokens as a list of entries that can be read at any place: the token files of a mix, the streams of a shard directory, the parts of a
// mixture. Data sets (dataset.h) cut entries into instances; where an entry's bytes lie is the store's affair.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/token_shards.h"

namespace dz {
class ThreadPool;
}

namespace dz::data {

// The ids that have a meaning, and the range of all. -1: there is none.
struct Vocabulary {
  int64_t size = 0;
  int64_t eos_id = -1;
  int64_t pad_id = -1;
  int64_t bos_id = -1;
};

struct TokenEntry {
  std::string name;   // path of the file, or source of the shards: for people, and for files that are found by it
  std::string label;  // source that its loss and its share count for
  int64_t tokens = 0;
  int64_t bytes = 0;  // of the file; what is left over of tokens * width belongs to no token
};

// Any number of threads may read.
class TokenStore {
 public:
  virtual ~TokenStore() = default;

  // The tokens [first, first + out.size()) of an entry. DataError naming file, byte offset and cause: a short read, an id outside the vocabulary.
  virtual void read(int64_t entry, int64_t first, std::span<int32_t> out) const = 0;
  // The label mask of the same tokens: 1 may be a target, 0 not. All ones where there is no mask. DataError for other bytes.
  virtual void read_label_mask(int64_t entry, int64_t first, std::span<uint8_t> out) const;
  // Reads every byte: hashes where they are recorded, the range of every id. DataError as above.
  virtual void verify(ThreadPool& pool) const = 0;
  // SHA-256 over contents, width, vocabulary and order of the entries; no path takes part.
  virtual std::string digest() const = 0;
  // One line for each entry: what a later resume compares to name what changed.
  virtual std::string manifest_json() const = 0;

  const std::vector<TokenEntry>& entries() const { return entries_; }
  const TokenEntry& entry(int64_t index) const { return entries_[static_cast<size_t>(index)]; }
  int64_t size() const { return static_cast<int64_t>(entries_.size()); }
  int64_t tokens() const;  // of all entries
  const Vocabulary& vocabulary() const { return vocabulary_; }
  TokenType type() const { return type_; }
  bool has_label_masks() const { return has_label_masks_; }

 protected:
  std::vector<TokenEntry> entries_;
  Vocabulary vocabulary_;
  TokenType type_ = TokenType::kUint32;
  bool has_label_masks_ = false;
};

// A split of a shard directory: an entry for each source, its files joined.
std::shared_ptr<const TokenStore> shard_store(std::shared_ptr<const TokenShards> shards, Split split);

}  // namespace dz::data
