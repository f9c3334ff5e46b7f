// All documents (or pieces of documents) of a store in one list, 12 bytes each: what data sets of one document an instance are made of.
// Internal to this room.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/documents.h"
#include "data/repetition_filter.h"

namespace dz::data {

class DocumentTable {
 public:
  using Emit = std::function<void(DocumentRange)>;
  // What is listed for a document: pieces of it, none, or all of it.
  using Split = std::function<void(DocumentRange, const Emit&)>;

  DocumentTable(std::shared_ptr<const TokenStore> store, const DocumentOptions& options, const Split& split);

  int64_t size() const { return static_cast<int64_t>(starts_.size()); }
  int64_t length(int64_t document) const { return lengths_[static_cast<size_t>(document)]; }
  // The first `tokens.size()` tokens of a document and, where the store has masks, their masks.
  void read(int64_t document, std::span<int32_t> tokens, std::span<uint8_t> label_mask) const;
  // One for each entry, in order: its documents and its tokens; `dropped` is what no listed piece holds.
  const std::vector<DatasetSource>& sources() const { return sources_; }
  const TokenStore& store() const { return *store_; }
  // Of the contents and of the cut.
  std::string digest() const;

 private:
  std::shared_ptr<const TokenStore> store_;
  std::string boundaries_;
  std::vector<int64_t> starts_;  // in the entry
  std::vector<int32_t> lengths_;
  std::vector<DatasetSource> sources_;
};

// The first `longest` tokens of a document.
DocumentTable::Split truncated(int64_t longest);

// SHA-256 over the contents and whatever else decides the cut; the store's own digest when `cut` is empty.
std::string digest_with(const TokenStore& store, const std::string& cut);

// The label that entries share, or theirs joined: the source of an instance that is made of several files.
std::string joined_label(std::span<const TokenEntry> entries);

// Fills row.tokens from `used` on with padding that is no target. An EOS pads when the vocabulary has no pad: the mask says what is padding.
void pad(Row& row, int64_t used, const Vocabulary& vocabulary);
int32_t padding_id(const Vocabulary& vocabulary);

// ConfigError naming recipe.data.KEY when the store has no instance for a data set.
void check_some(int64_t instances, const TokenStore& store);
void check_lengths(int64_t sequence_length);

}  // namespace dz::data
