#include "data/dataset.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/error.h"

namespace dz::data {
namespace {

void check_sequence_length(int64_t sequence_length) {
  if (sequence_length >= 2) return;
  throw ConfigError(Complaint{.where = "recipe.data.sequence_length",
                              .found = std::to_string(sequence_length),
                              .expected = "at least 2 tokens, so that one has a target",
                              .hint = ""});
}

class ShardDataset : public Dataset {
 public:
  ShardDataset(std::shared_ptr<const TokenShards> shards, Split split, int64_t sequence_length) : shards_(std::move(shards)), split_(split) {
    check_sequence_length(sequence_length);
    const TokenManifest& manifest = shards_->manifest();
    sequence_length_ = sequence_length;
    vocab_size_ = manifest.vocab_size;
    eos_id_ = manifest.eos_id;
    int64_t longest = 0;
    for (const Source& source : manifest.sources) {
      const int64_t tokens = source.stream(split).tokens;
      sources_.push_back({.name = source.name, .first = instances_, .instances = tokens / sequence_length, .tokens = tokens});
      instances_ += tokens / sequence_length;
      longest = std::max(longest, tokens);
    }
    if (instances_ == 0) {
      throw ConfigError(Complaint{
          .where = "recipe.data.sequence_length",
          .found = std::to_string(sequence_length),
          .expected = fmt::format("at most {}, the {} tokens of the longest source in {}", longest, name_of(split), shards_->directory().string()),
          .hint = ""});
    }
  }

  void read(int64_t instance, std::span<int32_t> out) const override {
    const DatasetSource& source = source_of(instance);
    DZ_CHECK(static_cast<int64_t>(out.size()) == sequence_length_, "size", out.size());
    shards_->read(&source - sources_.data(), split_, (instance - source.first) * sequence_length_, out);
  }

  std::string digest() const override { return shards_->manifest().digest(); }

 private:
  std::shared_ptr<const TokenShards> shards_;
  Split split_;
};

}  // namespace

const DatasetSource& Dataset::source_of(int64_t instance) const {
  DZ_CHECK(instance >= 0 && instance < instances_, "instance", instance, "instances", instances_);
  // The last source that starts at or before the instance: sources without instances are passed over.
  return *(std::upper_bound(sources_.begin(), sources_.end(), instance, [](int64_t id, const DatasetSource& source) { return id < source.first; }) -
           1);
}

int64_t Dataset::dropped_tokens() const {
  int64_t sum = 0;
  for (const DatasetSource& source : sources_) sum += source.tokens - source.instances * sequence_length_;
  return sum;
}

std::vector<std::string> describe(const Dataset& dataset) {
  std::vector<std::string> lines;
  for (const DatasetSource& source : dataset.sources()) {
    const int64_t dropped = source.tokens - source.instances * dataset.sequence_length();
    std::string line = fmt::format("{}: {} instances of {} tokens", source.name, source.instances, dataset.sequence_length());
    if (dropped > 0) line += fmt::format(", the last {} of {} tokens are not used", dropped, source.tokens);
    if (source.instances == 0) line += " (warning: shorter than one instance)";
    lines.push_back(std::move(line));
  }
  return lines;
}

std::shared_ptr<const Dataset> shard_dataset(std::shared_ptr<const TokenShards> shards, Split split, int64_t sequence_length) {
  return std::make_shared<ShardDataset>(std::move(shards), split, sequence_length);
}

}  // namespace dz::data
