#include "data/document_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"

namespace dz::data {

DocumentTable::DocumentTable(std::shared_ptr<const TokenStore> store, const DocumentOptions& options, const Split& split) : store_(std::move(store)) {
  boundaries_ = boundaries_digest(*store_, options);
  for (int64_t entry = 0; entry < store_->size(); ++entry) {
    const TokenEntry& file = store_->entry(entry);
    DatasetSource source{.name = file.label, .first = size(), .tokens = file.tokens, .dropped = file.tokens};
    const Emit emit = [&](DocumentRange range) {
      DZ_CHECK(range.length() >= 1 && range.length() <= INT32_MAX, "length", range.length());
      starts_.push_back(range.start);
      lengths_.push_back(static_cast<int32_t>(range.length()));
      source.dropped -= range.length();
    };
    for_each_document(*store_, entry, options, [&](DocumentRange range) { split(range, emit); });
    source.instances = size() - source.first;
    sources_.push_back(std::move(source));
  }
  starts_.shrink_to_fit();
  lengths_.shrink_to_fit();
}

void DocumentTable::read(int64_t document, std::span<int32_t> tokens, std::span<uint8_t> label_mask) const {
  DZ_CHECK(document >= 0 && document < size() && std::ssize(tokens) <= length(document), "document", document, "tokens", tokens.size());
  const auto after = std::upper_bound(sources_.begin(), sources_.end(), document, [](int64_t id, const DatasetSource& s) { return id < s.first; });
  const int64_t entry = after - sources_.begin() - 1, start = starts_[static_cast<size_t>(document)];
  store_->read(entry, start, tokens);
  if (store_->has_label_masks()) store_->read_label_mask(entry, start, label_mask);
}

std::string DocumentTable::digest() const { return digest_with(*store_, boundaries_); }

DocumentTable::Split truncated(int64_t longest) {
  return [longest](DocumentRange range, const DocumentTable::Emit& emit) { emit({range.start, std::min(range.end, range.start + longest)}); };
}

std::string digest_with(const TokenStore& store, const std::string& cut) {
  return cut.empty() ? store.digest() : sha256_hex("deltazero-cut-1\n" + store.digest() + "\n" + cut + "\n");
}

std::string joined_label(std::span<const TokenEntry> entries) {
  std::vector<std::string> labels;
  for (const TokenEntry& entry : entries) {
    if (std::find(labels.begin(), labels.end(), entry.label) == labels.end()) labels.push_back(entry.label);
  }
  constexpr size_t kMost = 4;
  if (labels.size() > kMost) return fmt::format("{} sources", labels.size());
  return fmt::format("{}", fmt::join(labels, "+"));
}

int32_t padding_id(const Vocabulary& vocabulary) {
  return static_cast<int32_t>(vocabulary.pad_id >= 0 ? vocabulary.pad_id : std::max<int64_t>(vocabulary.eos_id, 0));
}

void pad(Row& row, int64_t used, const Vocabulary& vocabulary) {
  std::fill(row.tokens.begin() + used, row.tokens.end(), padding_id(vocabulary));
  std::ranges::fill(row.label_mask.subspan(static_cast<size_t>(used)), uint8_t{0});
}

void check_some(int64_t instances, const TokenStore& store) {
  if (instances > 0) return;
  throw ConfigError(Complaint{.where = "recipe.data.kind",
                              .found = fmt::format("no document to make an instance of in {} tokens", store.tokens()),
                              .expected = "documents, each ending with EOS",
                              .hint = "recipe.data.documents.keep_tail takes what follows the last EOS as a document"});
}

void check_lengths(int64_t sequence_length) {
  constexpr int64_t kLongest = int64_t{1} << 30;
  if (sequence_length >= 2 && sequence_length <= kLongest) return;
  throw ConfigError(Complaint{.where = "recipe.data.sequence_length",
                              .found = std::to_string(sequence_length),
                              .expected = fmt::format("2 to {} tokens", kLongest),
                              .hint = ""});
}

}  // namespace dz::data
