#include "data/token_store.h"

#include <algorithm>

namespace dz::data {
namespace {

class ShardStore : public TokenStore {
 public:
  ShardStore(std::shared_ptr<const TokenShards> shards, Split split) : shards_(std::move(shards)), split_(split) {
    const TokenManifest& manifest = shards_->manifest();
    vocabulary_ = {.size = manifest.vocab_size, .eos_id = manifest.eos_id, .bos_id = manifest.bos_id};
    type_ = manifest.type;
    for (const Source& source : manifest.sources) {
      const int64_t tokens = source.stream(split).tokens;
      entries_.push_back({.name = source.name, .label = source.name, .tokens = tokens, .bytes = tokens * size_of(type_)});
    }
  }

  void read(int64_t entry, int64_t first, std::span<int32_t> out) const override { shards_->read(entry, split_, first, out); }
  void verify(ThreadPool& pool) const override { shards_->verify(pool); }
  std::string digest() const override { return shards_->manifest().digest(); }
  std::string manifest_json() const override { return to_json(shards_->manifest()); }

 private:
  std::shared_ptr<const TokenShards> shards_;
  Split split_;
};

}  // namespace

void TokenStore::read_label_mask(int64_t, int64_t, std::span<uint8_t> out) const { std::fill(out.begin(), out.end(), uint8_t{1}); }

int64_t TokenStore::tokens() const {
  int64_t sum = 0;
  for (const TokenEntry& entry : entries_) sum += entry.tokens;
  return sum;
}

std::shared_ptr<const TokenStore> shard_store(std::shared_ptr<const TokenShards> shards, Split split) {
  return std::make_shared<ShardStore>(std::move(shards), split);
}

}  // namespace dz::data
