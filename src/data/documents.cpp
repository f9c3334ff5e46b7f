#include "data/documents.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/hash.h"

namespace dz::data {
namespace {

template <class Enum, size_t kCount>
Enum parse_one_of(const std::array<Enum, kCount>& all, std::string_view name, const std::string& where) {
  std::string expected;
  for (const Enum value : all) {
    if (name == name_of(value)) return value;
    expected += (expected.empty() ? "" : " or ") + std::string(name_of(value));
  }
  throw ConfigError(Complaint{.where = where, .found = std::string(name), .expected = expected, .hint = ""});
}

DocumentCounts scan(const TokenStore& store, int64_t entry, Tail tail, const std::function<void(DocumentRange)>& visit) {
  constexpr int64_t kBlock = int64_t{1} << 18;
  const int64_t eos = store.vocabulary().eos_id, tokens = store.entry(entry).tokens;
  if (eos < 0) {
    throw ConfigError(Complaint{.where = "recipe.data.tokens.eos_id",
                                .found = "none",
                                .expected = "the id that ends a document: documents are found by it",
                                .hint = "or recipe.data.documents.boundaries: csv"});
  }
  DocumentCounts counts;
  std::vector<int32_t> block(static_cast<size_t>(std::min(kBlock, tokens)));
  int64_t start = 0;
  const auto emit = [&](int64_t end) {
    visit({start, end});
    ++counts.documents;
    counts.used += end - start;
    start = end;
  };
  for (int64_t first = 0; first < tokens; first += kBlock) {
    const std::span<int32_t> part = std::span(block).first(static_cast<size_t>(std::min(kBlock, tokens - first)));
    store.read(entry, first, part);
    for (auto at = std::find(part.begin(), part.end(), eos); at != part.end(); at = std::find(at + 1, part.end(), eos))
      emit(first + (at - part.begin()) + 1);
  }
  if (start < tokens && tail == Tail::kKeep) emit(tokens);
  counts.tail = tokens - start;
  return counts;
}

DocumentCounts from_metadata(const TokenStore& store, int64_t entry, const std::function<void(DocumentRange)>& visit) {
  const TokenEntry& file = store.entry(entry);
  DocumentCounts counts;
  read_document_metadata(document_metadata_path(file.name), file.tokens, [&](DocumentRange range) {
    if (range.length() == 0) {
      ++counts.empty;
      return;
    }
    visit(range);
    ++counts.documents;
    counts.used += range.length();
  });
  counts.outside = file.tokens - counts.used;
  return counts;
}

}  // namespace

std::string_view name_of(Boundaries boundaries) { return boundaries == Boundaries::kEos ? "eos" : "csv"; }
std::string_view name_of(Tail tail) { return tail == Tail::kDrop ? "drop" : "keep"; }
std::string_view name_of(LongDocuments rule) { return rule == LongDocuments::kTruncate ? "truncate" : "fragment"; }

Boundaries parse_boundaries(std::string_view name, const std::string& where) {
  return parse_one_of(std::array{Boundaries::kEos, Boundaries::kCsv}, name, where);
}
Tail parse_tail(std::string_view name, const std::string& where) { return parse_one_of(std::array{Tail::kDrop, Tail::kKeep}, name, where); }
LongDocuments parse_long_documents(std::string_view name, const std::string& where) {
  return parse_one_of(std::array{LongDocuments::kTruncate, LongDocuments::kFragment}, name, where);
}

std::vector<int64_t> document_lengths(std::span<const int32_t> tokens, const Vocabulary& vocabulary) {
  std::vector<int64_t> lengths;
  size_t start = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool last = i + 1 == tokens.size();
    const bool ends = tokens[i] == vocabulary.eos_id && (vocabulary.bos_id < 0 || (!last && tokens[i + 1] == vocabulary.bos_id));
    if (!ends && !last) continue;
    lengths.push_back(static_cast<int64_t>(i + 1 - start));
    start = i + 1;
  }
  return lengths;
}

std::vector<int64_t> cumulative_lengths(std::span<const std::vector<int64_t>> lengths) {
  std::vector<int64_t> ends = {0};
  for (const std::vector<int64_t>& of_instance : lengths) {
    for (const int64_t length : of_instance) {
      if (length != 0) ends.push_back(ends.back() + length);
    }
  }
  return ends;
}

DocumentCounts for_each_document(const TokenStore& store, int64_t entry, const DocumentOptions& options,
                                 const std::function<void(DocumentRange)>& visit) {
  return options.boundaries == Boundaries::kEos ? scan(store, entry, options.tail, visit) : from_metadata(store, entry, visit);
}

BoundedCounts for_each_document(const TokenStore& store, int64_t entry, const DocumentOptions& options, int64_t longest, LongDocuments rule,
                                const std::function<void(DocumentRange)>& visit) {
  BoundedCounts bounded;
  bounded.counts = for_each_document(store, entry, options, [&](DocumentRange range) {
    if (rule == LongDocuments::kTruncate) {
      const int64_t end = std::min(range.end, range.start + longest);
      bounded.cut += range.end - end;
      visit({range.start, end});
      return;
    }
    for (int64_t start = range.start; start < range.end; start += longest) visit({start, std::min(range.end, start + longest)});
  });
  return bounded;
}

std::string boundaries_digest(const TokenStore& store, const DocumentOptions& options) {
  if (options.boundaries == Boundaries::kEos) return {};
  Sha256 hash;
  for (const TokenEntry& entry : store.entries()) hash.update(document_metadata_digest(document_metadata_path(entry.name)) + "\n");
  return hash.hex();
}

}  // namespace dz::data
