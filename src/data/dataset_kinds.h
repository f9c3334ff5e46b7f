// The shapes of instances besides the fixed cut (fixed_dataset in dataset.h): a document each, several documents packed or interleaved, and
// pieces of varied lengths. Each reads what OLMo-core's data set of that kind reads (docs/data.md, "Shapes of instances"); the list of pieces is
// in memory, tokens are not. All throw ConfigError naming recipe.data.KEY for settings that do not fit and for data without an instance.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/big_seed.h"
#include "data/dataset.h"
#include "data/documents.h"
#include "data/packing.h"
#include "data/repetition_filter.h"

namespace dz::data {

// Instances of `dataset` whose tokens the filter finds bad have no target. Lengths, order and tokens stay (OLMo-core: instance_filter_config).
std::shared_ptr<const Dataset> filtered_dataset(std::shared_ptr<const Dataset> dataset, const RepetitionFilter& filter);

// A document an instance, cut to sequence_length, padded behind (OLMo-core: NumpyPaddedFSLDataset). The filter sees the document, not its padding.
struct PaddedSettings {
  int64_t sequence_length = 0;
  DocumentOptions documents;
  std::optional<RepetitionFilter> filter;
};
std::shared_ptr<const Dataset> padded_dataset(std::shared_ptr<const TokenStore> store, const PaddedSettings& settings);

// Documents of source_group_size files at a time, packed into instances without cutting any that fits (OLMo-core: NumpyPackedFSLDataset).
enum class PackingDialect : uint8_t {
  kStable,  // of equally long documents the first comes first; any sequence length; the filter sees the documents
  // NumPy's scalar order of equal lengths; a power of two; the filter sees the padding too, so that 32 pads make an instance bad.
  kOlmoCore,
};
std::string_view name_of(PackingDialect dialect);                                       // "stable", "olmo-core"
PackingDialect parse_packing_dialect(std::string_view name, const std::string& where);  // ConfigError listing the two

struct PackedSettings {
  int64_t sequence_length = 0;
  DocumentOptions documents;
  LongDocuments long_documents = LongDocuments::kTruncate;
  int64_t source_group_size = 1;
  PackingDialect dialect = PackingDialect::kStable;
  std::optional<RepetitionFilter> filter;
  // Where packings are kept for the next start; empty: nowhere. One that does not fit is made anew.
  fs::path cache_directory;
  // The work directory of an OLMo-core run, or its dataset-common: its packings are followed instead of making any. kOlmoCore only; the one way to
  // have the order of a NumPy on another CPU. DataError naming the file: missing, or not a packing of these files.
  fs::path olmo_core_caches;
};
std::shared_ptr<const Dataset> packed_dataset(std::shared_ptr<const TokenStore> store, const PackedSettings& settings);

// docs_per_instance documents cut to an equal share of the instance, taken apart into chunks_per_doc chunks and interleaved: chunk 0 of each,
// chunk 1 of each ... without pads, EOS and BOS; then BOS in front and EOS behind where there is room (OLMo-core:
// NumpyInterleavedFSLDataset). Documents of the entries named in `exempt` come first, each padded by itself. What is left of the others at the
// end is dropped. An instance is filtered when one of its documents is bad.
struct InterleavedSettings {
  int64_t sequence_length = 0;
  int64_t docs_per_instance = 2, chunks_per_doc = 2;  // both divide sequence_length
  BigSeed seed;                                       // of the documents' order: PCG64
  std::vector<std::string> exempt;
  DocumentOptions documents;
  std::optional<RepetitionFilter> filter;
};
std::shared_ptr<const Dataset> interleaved_dataset(std::shared_ptr<const TokenStore> store, const InterleavedSettings& settings);

// Pieces of documents whose lengths are powers of two, the largest first, none below min_length (OLMo-core: NumpyVSLDataset). A batch
// takes instances of one length: vsl_order (vsl_order.h) goes with it.
struct VslSettings {
  int64_t min_length = 256, max_length = 0;
  DocumentOptions documents;
  std::optional<RepetitionFilter> filter;
};
std::shared_ptr<const Dataset> vsl_dataset(std::shared_ptr<const TokenStore> store, const VslSettings& settings);

// The powers of two that a length is the sum of, the largest first, those above `cap` as several of it. length >= 0, cap a power of two.
std::vector<int64_t> capped_powers_of_two(int64_t length, int64_t cap);

// The entries in another order: store entry i is entry order[i] of `store`.
std::shared_ptr<const TokenStore> permuted_store(std::shared_ptr<const TokenStore> store, std::vector<int64_t> order);
// OLMo-core's order of the files for a source_permutation_seed: random.Random(seed).shuffle.
std::vector<int64_t> source_permutation(int64_t files, const BigSeed& seed);

}  // namespace dz::data
