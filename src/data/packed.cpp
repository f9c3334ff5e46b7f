// Packed documents (OLMo-core: data/numpy_dataset.py NumpyPackedFSLDataset, version 2.4.0).
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "data/dataset_kinds.h"
#include "data/document_table.h"
#include "data/packing_cache.h"

namespace dz::data {
namespace {

// Files that are packed together: entries [first, first + ends.size()) of the store.
struct Group {
  int64_t first = 0;
  std::vector<int64_t> ends;  // of each file, in the files joined
  int64_t tokens() const { return ends.empty() ? 0 : ends.back(); }
};

class PackedDataset : public Dataset {
 public:
  PackedDataset(std::shared_ptr<const TokenStore> store, const PackedSettings& settings) : store_(std::move(store)), settings_(settings) {
    sequence_length_ = settings.sequence_length;
    vocabulary_ = store_->vocabulary();
    if (settings.olmo_core_caches.empty()) boundaries_ = boundaries_digest(*store_, settings.documents);
    for (int64_t first = 0; first < store_->size(); first += settings.source_group_size) add_group(first);
    check_some(instances_, *store_);
  }

  void read(int64_t instance, Row& row) const override {
    DZ_CHECK(std::ssize(row.tokens) == sequence_length_, "size", row.tokens.size());
    const size_t index = static_cast<size_t>(&source_of(instance) - sources_.data());
    int64_t used = 0;
    for (const uint64_t document : packings_[index].instance(instance - sources_[index].first))
      used += read_document(groups_[index], packings_[index].document(document), row, used);
    pad(row, used, vocabulary_);
    const bool with_padding = settings_.dialect == PackingDialect::kOlmoCore;
    row.filtered = settings_.filter && !is_clean(with_padding ? row.tokens : row.tokens.first(static_cast<size_t>(used)), *settings_.filter);
  }

  std::string digest() const override { return digest_with(*store_, boundaries_); }

 private:
  std::span<const TokenEntry> files_of(const Group& group) const {
    return std::span(store_->entries()).subspan(static_cast<size_t>(group.first), group.ends.size());
  }

  void add_group(int64_t first) {
    Group group{.first = first};
    for (int64_t entry = first; entry < std::min(first + settings_.source_group_size, store_->size()); ++entry)
      group.ends.push_back(group.tokens() + store_->entry(entry).tokens);
    packings_.push_back(packing_of(group));
    const GroupPacking& packing = packings_.back();
    const int64_t used = packing.tokens();
    sources_.push_back({.name = joined_label(files_of(group)),
                        .first = instances_,
                        .instances = packing.instances(),
                        .tokens = group.tokens(),
                        .dropped = group.tokens() - used,
                        .padding = packing.instances() * sequence_length_ - used});
    instances_ += packing.instances();
    groups_.push_back(std::move(group));
  }

  GroupPacking packing_of(const Group& group) {
    if (!settings_.olmo_core_caches.empty()) return follow_olmo_core(group);
    if (settings_.cache_directory.empty()) return pack_group(group);
    const std::string suffix = cache_suffix(group);
    if (GroupPacking::exists(settings_.cache_directory, suffix)) {
      try {
        GroupPacking kept = GroupPacking::open(settings_.cache_directory, suffix);
        check_packing(kept, group, suffix);
        return kept;
      } catch (const DataError&) {
        // Damaged: it holds nothing that packing again does not give.
      }
    }
    GroupPacking packing = pack_group(group);
    packing.write(settings_.cache_directory, suffix);
    return packing;
  }

  GroupPacking follow_olmo_core(const Group& group) {
    const std::vector<std::string> extra = {std::string(name_of(settings_.long_documents)), "uint64"};
    const std::string suffix = olmo_core_cache_suffix(sequence_length_, files_of(group), extra);
    const fs::path below = settings_.olmo_core_caches / "dataset-common";
    GroupPacking packing = GroupPacking::open(fs::is_directory(below) ? below : settings_.olmo_core_caches, suffix);
    check_packing(packing, group, suffix);
    Sha256 hash;
    hash.update(boundaries_);
    for (const auto array : {packing.indices(), packing.by_instance(), packing.offsets()}) hash.update(std::as_bytes(array));
    boundaries_ = hash.hex();
    return packing;
  }

  void check_packing(const GroupPacking& packing, const Group& group, const std::string& suffix) const {
    std::vector<int64_t> files;
    for (const TokenEntry& entry : files_of(group)) files.push_back(entry.tokens);
    packing.check(files, sequence_length_, "packing *-" + suffix + ".npy");
  }

  // Of everything that decides the packing, contents included, so that a stale cache is never found.
  std::string cache_suffix(const Group& group) const {
    const Vocabulary& v = vocabulary_;
    const std::string key =
        fmt::format("deltazero-packing-1\n{}\n{} {}\n{} {} {}\n{} {} {} {}\n{}\n", store_->digest(), group.first, group.ends.size(),
                    name_of(store_->type()), v.eos_id, v.bos_id, sequence_length_, name_of(settings_.long_documents), name_of(settings_.dialect),
                    name_of(settings_.documents.tail), boundaries_);
    return fmt::format("{}-{}", sequence_length_, sha256_hex(key));
  }

  GroupPacking pack_group(const Group& group) const {
    std::vector<DocumentRange> documents;
    for (size_t i = 0; i < group.ends.size(); ++i) {
      const int64_t start = i == 0 ? 0 : group.ends[i - 1];
      for_each_document(*store_, group.first + static_cast<int64_t>(i), settings_.documents, sequence_length_, settings_.long_documents,
                        [&](DocumentRange range) {
                          documents.push_back({start + range.start, start + range.end});
                        });
    }
    std::vector<int64_t> lengths;
    for (const DocumentRange& document : documents) lengths.push_back(document.length());
    const std::vector<int64_t> order =
        order_by_length(lengths, settings_.dialect == PackingDialect::kOlmoCore ? TieRule::kNumpyScalar : TieRule::kStable);
    std::array<std::vector<uint64_t>, 3> arrays;
    for (size_t i = 0; i < order.size(); ++i) {
      const DocumentRange& document = documents[static_cast<size_t>(order[i])];
      lengths[i] = document.length();
      arrays[0].insert(arrays[0].end(), {static_cast<uint64_t>(document.start), static_cast<uint64_t>(document.end)});
    }
    const Packing packing = pack(lengths, sequence_length_);
    arrays[1].assign(packing.documents.begin(), packing.documents.end());
    for (size_t i = 0; i + 1 < packing.first.size(); ++i)
      arrays[2].insert(arrays[2].end(), {static_cast<uint64_t>(packing.first[i]), static_cast<uint64_t>(packing.first[i + 1])});
    return GroupPacking(std::move(arrays));
  }

  int64_t read_document(const Group& group, DocumentRange range, Row& row, int64_t used) const {
    const auto file = std::upper_bound(group.ends.begin(), group.ends.end(), range.start);
    const int64_t entry = group.first + (file - group.ends.begin()), start = range.start - (file == group.ends.begin() ? 0 : *(file - 1));
    const auto at = static_cast<size_t>(used), count = static_cast<size_t>(range.length());
    store_->read(entry, start, row.tokens.subspan(at, count));
    if (store_->has_label_masks()) store_->read_label_mask(entry, start, row.label_mask.subspan(at, count));
    return range.length();
  }

  std::shared_ptr<const TokenStore> store_;
  PackedSettings settings_;
  std::string boundaries_;  // what decides the cut besides the tokens
  std::vector<Group> groups_;
  std::vector<GroupPacking> packings_;
};

void check_packed(const PackedSettings& settings) {
  check_lengths(settings.sequence_length);
  if (settings.filter) check_filter(*settings.filter, "recipe.data.filter");
  const auto complain = [](const std::string& where, int64_t found, const std::string& expected) {
    throw ConfigError(Complaint{.where = where, .found = std::to_string(found), .expected = expected, .hint = ""});
  };
  if (settings.source_group_size < 1) complain("recipe.data.packing.group_size", settings.source_group_size, "at least 1");
  const bool olmo_core = settings.dialect == PackingDialect::kOlmoCore;
  if (olmo_core && !std::has_single_bit(static_cast<uint64_t>(settings.sequence_length)))
    complain("recipe.data.sequence_length", settings.sequence_length, "a power of two for recipe.data.packing.dialect olmo-core");
  if (!olmo_core && !settings.olmo_core_caches.empty())
    throw ConfigError("recipe.data.packing.dialect: found stable, expected olmo-core to follow the packings of an OLMo-core run");
}

}  // namespace

std::string_view name_of(PackingDialect dialect) { return dialect == PackingDialect::kStable ? "stable" : "olmo-core"; }

PackingDialect parse_packing_dialect(std::string_view name, const std::string& where) {
  for (const PackingDialect dialect : {PackingDialect::kStable, PackingDialect::kOlmoCore}) {
    if (name == name_of(dialect)) return dialect;
  }
  throw ConfigError(Complaint{.where = where, .found = std::string(name), .expected = "stable or olmo-core", .hint = ""});
}

std::shared_ptr<const Dataset> packed_dataset(std::shared_ptr<const TokenStore> store, const PackedSettings& settings) {
  check_packed(settings);
  return std::make_shared<PackedDataset>(std::move(store), settings);
}

}  // namespace dz::data
