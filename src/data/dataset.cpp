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

void check_target_length(int64_t sequence_length, int64_t target_length) {
  if (target_length == 0 || (target_length >= sequence_length && target_length % sequence_length == 0)) return;
  throw ConfigError(Complaint{.where = "recipe.data.target_length",
                              .found = std::to_string(target_length),
                              .expected = fmt::format("0, or a multiple of recipe.data.sequence_length ({})", sequence_length),
                              .hint = ""});
}

class FixedDataset : public Dataset {
 public:
  FixedDataset(std::shared_ptr<const TokenStore> store, int64_t sequence_length, int64_t target_length) : store_(std::move(store)) {
    check_sequence_length(sequence_length);
    check_target_length(sequence_length, target_length);
    const int64_t unit = target_length > 0 ? target_length : sequence_length;
    sequence_length_ = sequence_length;
    vocabulary_ = store_->vocabulary();
    int64_t longest = 0;
    for (const TokenEntry& entry : store_->entries()) {
      const int64_t instances = entry.tokens / unit * (unit / sequence_length);
      sources_.push_back({.name = entry.label,
                          .first = instances_,
                          .instances = instances,
                          .tokens = entry.tokens,
                          .dropped = entry.tokens - instances * sequence_length});
      instances_ += instances;
      longest = std::max(longest, entry.tokens);
    }
    if (instances_ == 0) {
      throw ConfigError(Complaint{.where = target_length > 0 ? "recipe.data.target_length" : "recipe.data.sequence_length",
                                  .found = std::to_string(unit),
                                  .expected = fmt::format("at most {}, the tokens of the longest source or file", longest),
                                  .hint = ""});
    }
  }

  void read(int64_t instance, Row& row) const override {
    const DatasetSource& source = source_of(instance);
    DZ_CHECK(static_cast<int64_t>(row.tokens.size()) == sequence_length_, "size", row.tokens.size());
    const int64_t entry = &source - sources_.data(), first = (instance - source.first) * sequence_length_;
    store_->read(entry, first, row.tokens);
    if (store_->has_label_masks()) store_->read_label_mask(entry, first, row.label_mask);
  }

  std::string digest() const override { return store_->digest(); }

 private:
  std::shared_ptr<const TokenStore> store_;
};

}  // namespace

int64_t Dataset::length(int64_t) const { return sequence_length_; }

const DatasetSource& Dataset::source_of(int64_t instance) const {
  DZ_CHECK(instance >= 0 && instance < instances_, "instance", instance, "instances", instances_);
  // The last source that starts at or before the instance: sources without instances are passed over.
  return *(std::upper_bound(sources_.begin(), sources_.end(), instance, [](int64_t id, const DatasetSource& source) { return id < source.first; }) -
           1);
}

int64_t Dataset::dropped_tokens() const {
  int64_t sum = 0;
  for (const DatasetSource& source : sources_) sum += source.dropped;
  return sum;
}

std::vector<std::string> describe(const Dataset& dataset) {
  std::vector<std::string> lines;
  for (const DatasetSource& source : dataset.sources()) {
    const bool varied = source.instances * dataset.sequence_length() != source.tokens - source.dropped + source.padding;
    std::string line =
        fmt::format("{}: {} instances of {}{} tokens", source.name, source.instances, varied ? "up to " : "", dataset.sequence_length());
    if (source.padding > 0) line += fmt::format(", {} of them padding", source.padding);
    const bool tail = source.dropped == source.tokens - source.instances * dataset.sequence_length();
    if (source.dropped > 0) line += fmt::format("{} {} of {} tokens are not used", tail ? ", the last" : ",", source.dropped, source.tokens);
    if (source.instances == 0)
      line += source.tokens < dataset.sequence_length() ? " (warning: shorter than one instance)" : " (warning: no document in it)";
    lines.push_back(std::move(line));
  }
  return lines;
}

std::shared_ptr<const Dataset> fixed_dataset(std::shared_ptr<const TokenStore> store, int64_t sequence_length, int64_t target_length) {
  return std::make_shared<FixedDataset>(std::move(store), sequence_length, target_length);
}

std::shared_ptr<const Dataset> shard_dataset(std::shared_ptr<const TokenShards> shards, Split split, int64_t sequence_length) {
  return fixed_dataset(shard_store(std::move(shards), split), sequence_length);
}

}  // namespace dz::data
