// One document an instance, and what wraps a data set or a store without changing any token.
#include <numeric>

#include "base/check.h"
#include "base/hash.h"
#include "data/dataset_kinds.h"
#include "data/document_table.h"
#include "data/python_random.h"

namespace dz::data {
namespace {

class FilteredDataset : public Dataset {
 public:
  FilteredDataset(std::shared_ptr<const Dataset> dataset, const RepetitionFilter& filter) : dataset_(std::move(dataset)), filter_(filter) {
    check_filter(filter, "recipe.data.filter");
    instances_ = dataset_->instances();
    sequence_length_ = dataset_->sequence_length();
    vocabulary_ = dataset_->vocabulary();
    sources_ = dataset_->sources();
  }

  void read(int64_t instance, Row& row) const override {
    dataset_->read(instance, row);
    row.filtered = row.filtered || !is_clean(row.tokens, filter_);
  }
  int64_t length(int64_t instance) const override { return dataset_->length(instance); }
  std::string digest() const override { return dataset_->digest(); }

 private:
  std::shared_ptr<const Dataset> dataset_;
  RepetitionFilter filter_;
};

class PaddedDataset : public Dataset {
 public:
  PaddedDataset(std::shared_ptr<const TokenStore> store, const PaddedSettings& settings)
      : filter_(settings.filter), documents_(std::move(store), settings.documents, truncated(settings.sequence_length)) {
    check_some(documents_.size(), documents_.store());
    sequence_length_ = settings.sequence_length;
    instances_ = documents_.size();
    vocabulary_ = documents_.store().vocabulary();
    sources_ = documents_.sources();
    for (DatasetSource& source : sources_) source.padding = source.instances * sequence_length_ - (source.tokens - source.dropped);
  }

  void read(int64_t instance, Row& row) const override {
    DZ_CHECK(std::ssize(row.tokens) == sequence_length_, "size", row.tokens.size());
    const int64_t used = documents_.length(instance);
    const std::span<int32_t> tokens = row.tokens.first(static_cast<size_t>(used));
    documents_.read(instance, tokens, row.label_mask.first(static_cast<size_t>(used)));
    row.filtered = filter_ && !is_clean(tokens, *filter_);
    pad(row, used, vocabulary_);
  }

  std::string digest() const override { return documents_.digest(); }

 private:
  std::optional<RepetitionFilter> filter_;
  DocumentTable documents_;
};

class PermutedStore : public TokenStore {
 public:
  PermutedStore(std::shared_ptr<const TokenStore> store, std::vector<int64_t> order) : store_(std::move(store)), order_(std::move(order)) {
    DZ_CHECK(std::ssize(order_) == store_->size(), "order", order_.size(), "entries", store_->size());
    vocabulary_ = store_->vocabulary();
    type_ = store_->type();
    has_label_masks_ = store_->has_label_masks();
    for (const int64_t entry : order_) entries_.push_back(store_->entry(entry));
  }

  void read(int64_t entry, int64_t first, std::span<int32_t> out) const override { store_->read(of(entry), first, out); }
  void read_label_mask(int64_t entry, int64_t first, std::span<uint8_t> out) const override { store_->read_label_mask(of(entry), first, out); }
  void verify(ThreadPool& pool) const override { store_->verify(pool); }
  std::string digest() const override {
    std::string text = "deltazero-permuted-1\n" + store_->digest();
    for (const int64_t entry : order_) text += "\n" + std::to_string(entry);
    return sha256_hex(text);
  }
  std::string manifest_json() const override { return store_->manifest_json(); }

 private:
  int64_t of(int64_t entry) const { return order_[static_cast<size_t>(entry)]; }

  std::shared_ptr<const TokenStore> store_;
  std::vector<int64_t> order_;
};

}  // namespace

std::shared_ptr<const Dataset> filtered_dataset(std::shared_ptr<const Dataset> dataset, const RepetitionFilter& filter) {
  return std::make_shared<FilteredDataset>(std::move(dataset), filter);
}

std::shared_ptr<const Dataset> padded_dataset(std::shared_ptr<const TokenStore> store, const PaddedSettings& settings) {
  check_lengths(settings.sequence_length);
  if (settings.filter) check_filter(*settings.filter, "recipe.data.filter");
  return std::make_shared<PaddedDataset>(std::move(store), settings);
}

std::shared_ptr<const TokenStore> permuted_store(std::shared_ptr<const TokenStore> store, std::vector<int64_t> order) {
  return std::make_shared<PermutedStore>(std::move(store), std::move(order));
}

std::vector<int64_t> source_permutation(int64_t files, const BigSeed& seed) {
  std::vector<int64_t> order(static_cast<size_t>(files));
  std::iota(order.begin(), order.end(), int64_t{0});
  PythonRandom(seed).shuffle(std::span(order));
  return order;
}

}  // namespace dz::data
