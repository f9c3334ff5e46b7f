// A data set of instances of equal length: a source's tokens cut into pieces of sequence_length, the tail of each source dropped; no
// instance crosses from one source into another. Inputs are the tokens, targets the same tokens one to the left, and the last position of
// an instance has no target (OLMo-core: data/utils.py get_labels), so a token is never read twice.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/token_shards.h"

namespace dz::data {

struct DatasetSource {
  std::string name;
  int64_t first = 0;  // instance
  int64_t instances = 0;
  int64_t tokens = 0;  // those there are, the dropped tail included
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  // Fills out[sequence_length]; thread safe. DataError as TokenShards::read.
  virtual void read(int64_t instance, std::span<int32_t> out) const = 0;
  virtual std::string digest() const = 0;  // of the contents; takes part in the recipe hash

  int64_t instances() const { return instances_; }
  int64_t sequence_length() const { return sequence_length_; }
  int64_t vocab_size() const { return vocab_size_; }
  int64_t eos_id() const { return eos_id_; }
  const std::vector<DatasetSource>& sources() const { return sources_; }
  const DatasetSource& source_of(int64_t instance) const;
  int64_t dropped_tokens() const;  // of all sources' tails

 protected:
  int64_t instances_ = 0, sequence_length_ = 0, vocab_size_ = 0, eos_id_ = 0;
  std::vector<DatasetSource> sources_;
};

// ConfigError when no source has sequence_length tokens.
std::shared_ptr<const Dataset> shard_dataset(std::shared_ptr<const TokenShards> shards, Split split, int64_t sequence_length);

// What a person should know about the data, one line for each source: instances, tokens, the tail that is dropped.
std::vector<std::string> describe(const Dataset& dataset);

// A token stream that is computed, not read: documents of varied lengths, each ending with EOS, in which a token mostly is one of three
// successors of the token before it, so that a model can learn something. Nothing on disk: the contract model trains on it.
// ConfigError for counts that do not fit; at most 2^28 tokens, which are held in memory.
struct GeneratedSettings {
  int64_t tokens = 0;
  int64_t documents = 1;  // at most tokens / 2
};
std::shared_ptr<const Dataset> generated_dataset(const GeneratedSettings& settings, int64_t vocab_size, int64_t eos_id, uint64_t seed,
                                                 int64_t sequence_length);

}  // namespace dz::data
