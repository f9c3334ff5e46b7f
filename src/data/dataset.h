// A data set: instances that can be read in any order. Which tokens make an instance is the kind of the data set (fixed pieces, padded or
// packed documents, ...); in which order instances come is the order's affair (order.h).
//
// Inputs are the tokens, targets the same tokens one to the left, and the last position of an instance has no target (OLMo-core:
// data/utils.py get_labels), so a token is never read twice.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/token_store.h"

namespace dz::data {

struct DatasetSource {
  std::string name;
  int64_t first = 0;  // instance
  int64_t instances = 0;
  int64_t tokens = 0;   // those there are, the dropped ones included
  int64_t dropped = 0;  // of these, in no instance: tails, what a cut to length leaves over
  int64_t padding = 0;  // pads that its instances are filled up with
};

// One instance as it is read; the memory is the caller's. Both spans have length(instance) elements.
struct Row {
  std::span<int32_t> tokens;
  std::span<uint8_t> label_mask;  // ones on entry; 0: this token is no target (label mask file, padding)
  bool filtered = false;          // set: no token of the instance is a target (repetition filter)
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  // Fills a row; thread safe. DataError as TokenStore::read.
  virtual void read(int64_t instance, Row& row) const = 0;
  // Tokens of an instance: sequence_length(), except where lengths vary.
  virtual int64_t length(int64_t instance) const;
  // Of the contents and of how they are cut; takes part in the recipe hash.
  virtual std::string digest() const = 0;

  int64_t instances() const { return instances_; }
  int64_t sequence_length() const { return sequence_length_; }  // the longest
  const Vocabulary& vocabulary() const { return vocabulary_; }
  int64_t vocab_size() const { return vocabulary_.size; }
  int64_t eos_id() const { return vocabulary_.eos_id; }
  const std::vector<DatasetSource>& sources() const { return sources_; }
  const DatasetSource& source_of(int64_t instance) const;
  int64_t dropped_tokens() const;  // that are in no instance

 protected:
  int64_t instances_ = 0, sequence_length_ = 0;
  Vocabulary vocabulary_;
  std::vector<DatasetSource> sources_;  // by first instance
};

// Each entry's tokens cut into pieces of sequence_length; the tail of each entry is dropped and no instance crosses from one entry into
// another. With target_length (a multiple of sequence_length; 0: none) the tail is what is left of pieces of target_length (OLMo-core:
// max_target_sequence_length). ConfigError when no entry has enough tokens.
std::shared_ptr<const Dataset> fixed_dataset(std::shared_ptr<const TokenStore> store, int64_t sequence_length, int64_t target_length = 0);

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
