// Where documents begin and end, in an instance and in a token file. Shapes of data sets (dataset_kinds.h) are made of these.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/document_metadata.h"
#include "data/token_store.h"

namespace dz::data {

// The lengths of the documents of an instance, in order; their sum is tokens.size(). A document ends with EOS, or, with a BOS in the
// vocabulary, with an EOS that a BOS follows; what is left at the end is one more (OLMo-core: get_document_lengths). Padding counts: pads
// that follow an EOS are a document of their own.
std::vector<int64_t> document_lengths(std::span<const int32_t> tokens, const Vocabulary& vocabulary);

// 0, then where each document of the batch ends, its instances joined (OLMo-core: get_cumulative_document_lengths, which leaves zeros out).
std::vector<int64_t> cumulative_lengths(std::span<const std::vector<int64_t>> lengths);

enum class Boundaries : uint8_t {
  kEos,  // every token file is searched for EOS: what OLMo-core does with local files, whether there is metadata or not
  kCsv,  // the rows of X.csv.gz
};
enum class Tail : uint8_t { kDrop, kKeep };                   // the tokens after the last EOS: no document (OLMo-core), or the last one
enum class LongDocuments : uint8_t { kTruncate, kFragment };  // keep the first sequence_length tokens, or make pieces of that length

std::string_view name_of(Boundaries boundaries);  // "eos", "csv"
std::string_view name_of(Tail tail);              // "drop", "keep"
std::string_view name_of(LongDocuments rule);     // "truncate", "fragment", as OLMo-core spells them
// ConfigError listing the names.
Boundaries parse_boundaries(std::string_view name, const std::string& where);
Tail parse_tail(std::string_view name, const std::string& where);
LongDocuments parse_long_documents(std::string_view name, const std::string& where);

struct DocumentOptions {
  Boundaries boundaries = Boundaries::kEos;
  Tail tail = Tail::kDrop;  // with kEos
};

// What became of the tokens of an entry: used + tail + outside = all of them.
struct DocumentCounts {
  int64_t documents = 0;
  int64_t empty = 0;    // rows of metadata without a token; they are left out
  int64_t used = 0;     // tokens in documents
  int64_t tail = 0;     // dropped after the last EOS
  int64_t outside = 0;  // that no row of metadata names
};

// Calls `visit` with each document of an entry, in order. Reads the whole entry (kEos) or its metadata, in constant memory.
// DataError as TokenStore::read and read_document_metadata; ConfigError when the vocabulary has no EOS to look for.
DocumentCounts for_each_document(const TokenStore& store, int64_t entry, const DocumentOptions& options,
                                 const std::function<void(DocumentRange)>& visit);

// The same with no document longer than `longest`. Returns, besides the counts, how many tokens truncation cut off.
struct BoundedCounts {
  DocumentCounts counts;
  int64_t cut = 0;
};
BoundedCounts for_each_document(const TokenStore& store, int64_t entry, const DocumentOptions& options, int64_t longest, LongDocuments rule,
                                const std::function<void(DocumentRange)>& visit);

// SHA-256 over what decides the cut besides the tokens: nothing for kEos (an empty string), the metadata files for kCsv.
std::string boundaries_digest(const TokenStore& store, const DocumentOptions& options);

}  // namespace dz::data
