// Documents interleaved chunk by chunk (OLMo-core: data/numpy_dataset.py NumpyInterleavedFSLDataset, version 2.4.0).
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/error.h"
#include "data/dataset_kinds.h"
#include "data/document_table.h"
#include "data/numpy_random.h"

namespace dz::data {
namespace {

void check_divides(const char* key, int64_t value, int64_t sequence_length) {
  if (value >= 1 && sequence_length % value == 0) return;
  throw ConfigError(Complaint{.where = fmt::format("recipe.data.interleaved.{}", key),
                              .found = std::to_string(value),
                              .expected = fmt::format("a divisor of recipe.data.sequence_length ({})", sequence_length),
                              .hint = ""});
}

void check_entry(const TokenStore& store, const std::string& name) {
  const auto& entries = store.entries();
  if (std::any_of(entries.begin(), entries.end(), [&](const TokenEntry& entry) { return entry.name == name; })) return;
  throw ConfigError(Complaint{.where = "recipe.data.interleaved.exempt",
                              .found = name,
                              .expected = "the name of a token file or source of the data, as it is given there",
                              .hint = entries.empty() ? "" : "the first is " + entries.front().name});
}

struct Document {
  std::vector<int32_t> tokens;
  std::vector<uint8_t> mask;
};

class InterleavedDataset : public Dataset {
 public:
  InterleavedDataset(std::shared_ptr<const TokenStore> store, const InterleavedSettings& settings)
      : settings_(settings), documents_(std::move(store), settings.documents, truncated(settings.sequence_length)) {
    sequence_length_ = settings.sequence_length;
    share_ = sequence_length_ / settings.docs_per_instance;
    vocabulary_ = documents_.store().vocabulary();
    choose_documents();
    check_some(instances_, documents_.store());
  }

  void read(int64_t instance, Row& row) const override {
    DZ_CHECK(instance >= 0 && instance < instances_ && std::ssize(row.tokens) == sequence_length_, "instance", instance);
    row.filtered = false;
    if (instance < std::ssize(exempt_)) return read_alone(exempt_[static_cast<size_t>(instance)], row);
    const int64_t first = (instance - std::ssize(exempt_)) * settings_.docs_per_instance;
    std::vector<Document> documents(static_cast<size_t>(settings_.docs_per_instance));
    for (size_t i = 0; i < documents.size(); ++i) documents[i] = read_share(order_[static_cast<size_t>(first) + i], row);
    interleave(documents, row);
  }

  std::string digest() const override { return documents_.digest(); }

 private:
  // Documents of exempt entries come first in the order of the files; the others in the order of numpy's permutation.
  void choose_documents() {
    DatasetSource mixed;
    std::vector<TokenEntry> mixed_entries;
    for (int64_t entry = 0; entry < documents_.store().size(); ++entry) {
      const DatasetSource& source = documents_.sources()[static_cast<size_t>(entry)];
      const std::vector<std::string>& names = settings_.exempt;
      const bool exempt = std::find(names.begin(), names.end(), documents_.store().entry(entry).name) != names.end();
      std::vector<uint32_t>& list = exempt ? exempt_ : order_;
      if (exempt) {
        sources_.push_back(source);
        sources_.back().first = std::ssize(exempt_);
        sources_.back().padding = source.instances * sequence_length_ - (source.tokens - source.dropped);
      } else {
        mixed_entries.push_back(documents_.store().entry(entry));
        mixed.tokens += source.tokens;
      }
      for (int64_t i = 0; i < source.instances; ++i) list.push_back(static_cast<uint32_t>(source.first + i));
    }
    DZ_CHECK(documents_.size() <= int64_t{UINT32_MAX}, "documents", documents_.size());
    NumpyGenerator(settings_.seed).shuffle(std::span(order_));
    mixed.name = joined_label(mixed_entries);
    mixed.first = std::ssize(exempt_);
    mixed.instances = std::ssize(order_) / settings_.docs_per_instance;
    order_.resize(static_cast<size_t>(mixed.instances * settings_.docs_per_instance));
    mixed.dropped = mixed.tokens;
    for (const uint32_t document : order_) mixed.dropped -= std::min(documents_.length(document), share_);
    mixed.padding = mixed.instances * sequence_length_ - (mixed.tokens - mixed.dropped);
    instances_ = mixed.first + mixed.instances;
    if (!mixed_entries.empty()) sources_.push_back(std::move(mixed));
  }

  void read_alone(int64_t document, Row& row) const {
    const int64_t used = documents_.length(document);
    const std::span<int32_t> tokens = row.tokens.first(static_cast<size_t>(used));
    documents_.read(document, tokens, row.label_mask.first(static_cast<size_t>(used)));
    row.filtered = settings_.filter && !is_clean(tokens, *settings_.filter);
    pad(row, used, vocabulary_);
  }

  // The share of a document without its special tokens. The filter judges the whole of it.
  Document read_share(int64_t document, Row& row) const {
    const auto used = static_cast<size_t>(documents_.length(document));
    Document all{std::vector<int32_t>(used), std::vector<uint8_t>(used, 1)}, kept;
    documents_.read(document, all.tokens, all.mask);
    if (settings_.filter && !is_clean(all.tokens, *settings_.filter)) row.filtered = true;
    for (size_t i = 0; i < std::min(used, static_cast<size_t>(share_)); ++i) {
      const int64_t token = all.tokens[i];
      if (token == vocabulary_.pad_id || token == vocabulary_.eos_id || token == vocabulary_.bos_id) continue;
      kept.tokens.push_back(all.tokens[i]);
      kept.mask.push_back(all.mask[i]);
    }
    return kept;
  }

  // Chunks as numpy.array_split makes them: the first size mod chunks of them are one longer.
  void interleave(const std::vector<Document>& documents, Row& row) const {
    int64_t total = 0, used = 0;
    for (const Document& document : documents) total += std::ssize(document.tokens);
    const auto put = [&](int64_t token, uint8_t mask) {
      row.tokens[static_cast<size_t>(used)] = static_cast<int32_t>(token);
      row.label_mask[static_cast<size_t>(used++)] = mask;
    };
    if (vocabulary_.bos_id >= 0 && total < sequence_length_) put(vocabulary_.bos_id, 1);
    const int64_t chunks = settings_.chunks_per_doc;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      for (const Document& document : documents) {
        const int64_t size = std::ssize(document.tokens) / chunks, longer = std::ssize(document.tokens) % chunks;
        const int64_t start = chunk * size + std::min(chunk, longer), end = start + size + (chunk < longer ? 1 : 0);
        for (auto i = static_cast<size_t>(start); i < static_cast<size_t>(end); ++i) put(document.tokens[i], document.mask[i]);
      }
    }
    if (used < sequence_length_) put(vocabulary_.eos_id, 1);
    pad(row, used, vocabulary_);
  }

  InterleavedSettings settings_;
  DocumentTable documents_;
  int64_t share_ = 0;                     // tokens of a document in an instance
  std::vector<uint32_t> exempt_, order_;  // documents
};

}  // namespace

std::shared_ptr<const Dataset> interleaved_dataset(std::shared_ptr<const TokenStore> store, const InterleavedSettings& settings) {
  check_lengths(settings.sequence_length);
  check_divides("documents", settings.docs_per_instance, settings.sequence_length);
  check_divides("chunks", settings.chunks_per_doc, settings.sequence_length);
  if (settings.filter) check_filter(*settings.filter, "recipe.data.filter");
  if (store->vocabulary().eos_id < 0) throw ConfigError("recipe.data.tokens.eos_id: found none, expected the id that ends an interleaved instance");
  for (const std::string& name : settings.exempt) check_entry(*store, name);
  return std::make_shared<InterleavedDataset>(std::move(store), settings);
}

}  // namespace dz::data
