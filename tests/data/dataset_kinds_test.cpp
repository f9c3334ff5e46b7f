#include "data/dataset_kinds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "data/dataset_differences.h"
#include "data/document_table.h"
#include "data/loader.h"
#include "data/packing_cache.h"

namespace dz::data {
namespace {

using nlohmann::json;
using test::differences;
using test::GoldenDataset;
using test::GoldenTensors;
using test::MemoryStore;
using test::message_of;
using test::OwnedRow;
using Ids = std::vector<int32_t>;
using Mask = std::vector<uint8_t>;

TEST(DatasetKinds, EveryInstanceOfAllEighteenEqualsOlmoCore) {
  const GoldenTensors tensors;
  int compared = 0;
  for (const GoldenDataset& golden : test::golden_datasets()) {
    EXPECT_EQ(differences(golden, *golden.open(), tensors), std::vector<std::string>()) << golden.name;
    EXPECT_EQ(golden.fingerprint(), golden.row["fingerprint"].get<std::string>()) << golden.name;
    ++compared;
  }
  EXPECT_EQ(compared, 18);
}

TEST(DatasetKinds, TheComparisonSeesEveryChange) {
  const GoldenTensors tensors;
  using Names = std::vector<std::string>;
  {
    const GoldenDataset golden = test::golden_dataset("padded_masks");
    auto store = std::make_shared<MemoryStore>(golden.store->vocabulary(), golden.store->type());
    for (int64_t i = 0; i < golden.store->size(); ++i) {
      std::vector<uint8_t> mask(static_cast<size_t>(golden.store->entry(i).tokens));
      golden.store->read_label_mask(i, 0, mask);
      if (i == 0) mask[3] ^= 1;
      store->add(golden.store->entry(i).name, golden.store->tokens_of(i), mask);
    }
    EXPECT_EQ(differences(golden, *padded_dataset(store, golden.padded()), tensors), (Names{"labels", "label_mask"}));
  }
  {
    // Equal lengths in stable order: other documents fill the same places.
    const GoldenDataset golden = test::golden_dataset("packed_truncate");
    PackedSettings stable = golden.packed();
    stable.dialect = PackingDialect::kStable;
    const auto dataset = packed_dataset(golden.store, stable);
    EXPECT_EQ(dataset->instances(), golden.row["length"].get<int64_t>());
    EXPECT_EQ(differences(golden, *dataset, tensors).front(), "input_ids");
  }
  {
    const GoldenDataset golden = test::golden_dataset("interleaved");
    InterleavedSettings other = golden.interleaved();
    other.chunks_per_doc = 2;
    EXPECT_EQ(differences(golden, *interleaved_dataset(golden.store, other), tensors), (Names{"input_ids", "labels"}));
    other = golden.interleaved();
    other.seed = 4;
    EXPECT_NE(differences(golden, *interleaved_dataset(golden.store, other), tensors), Names());
  }
  {
    // The filter of ours looks at real tokens, OLMo-core's at 32 and more pads as well.
    const GoldenDataset golden = test::golden_dataset("packed_filter");
    PackedSettings stable = golden.packed();
    stable.dialect = PackingDialect::kStable;
    const auto ours = packed_dataset(golden.store, stable), theirs = golden.open();
    int64_t bad_ours = 0, bad_theirs = 0;
    for (int64_t id = 0; id < ours->instances(); ++id) bad_ours += OwnedRow(*ours, id).row.filtered;
    for (int64_t id = 0; id < theirs->instances(); ++id) bad_theirs += OwnedRow(*theirs, id).row.filtered;
    EXPECT_EQ(bad_ours, 0);
    EXPECT_GT(bad_theirs, 0);
  }
  {
    const GoldenDataset golden = test::golden_dataset("fsl");
    golden.store->tokens_of(0)[0] ^= 1;
    EXPECT_EQ(differences(golden, *golden.open(), tensors), (Names{"input_ids"})) << "token 0 of an instance is no target";
    EXPECT_EQ(golden.fingerprint(), golden.row["fingerprint"]) << "OLMo-core's fingerprint does not see contents; digests do";
  }
}

TEST(DatasetKinds, FirstInstancesOfEachFileAreOlmoCoresOffsets) {
  for (const GoldenDataset& golden : test::golden_datasets()) {
    if (!golden.row.contains("offsets")) continue;
    // Those of an interleaved data set count documents.
    const auto dataset = golden.kind == "NumpyInterleavedFSLDataset" ? padded_dataset(golden.store, golden.padded()) : golden.open();
    json offsets = json::array();
    for (const DatasetSource& source : dataset->sources()) offsets.push_back({source.first, source.first + source.instances});
    EXPECT_EQ(offsets, golden.row["offsets"]) << golden.name;
  }
}

TEST(DatasetKinds, CacheFilesAreNamedAndWrittenAsOlmoCoreDoes) {
  const GoldenTensors tensors;
  for (const GoldenDataset& golden : test::golden_datasets()) {
    std::set<std::string> names;
    const auto entries = std::span(golden.store->entries());
    if (golden.kind == "NumpyPaddedFSLDataset" || golden.kind == "NumpyInterleavedFSLDataset") {
      std::vector<std::string> extra;
      if (golden.kind == "NumpyInterleavedFSLDataset") extra.push_back(std::to_string(golden.interleaved().docs_per_instance));
      for (size_t i = 0; i < entries.size(); ++i)
        names.insert("instance-indices-" + olmo_core_cache_suffix(golden.length, entries.subspan(i, 1), extra) + ".npy");
    } else if (golden.kind == "NumpyPackedFSLDataset") {
      const PackedSettings settings = golden.packed();
      const std::vector<std::string> extra = {std::string(name_of(settings.long_documents)), "uint64"};
      const auto group_size = static_cast<size_t>(settings.source_group_size);
      for (size_t first = 0; first < entries.size(); first += group_size) {
        const auto group = entries.subspan(first, std::min(group_size, entries.size() - first));
        for (const std::string_view kind : kPackingFiles)
          names.insert(std::string(kind) + "-" + olmo_core_cache_suffix(golden.length, group, extra) + ".npy");
      }
    }
    EXPECT_EQ(names, golden.row["cache_files"].get<std::set<std::string>>()) << golden.name;
  }
}

std::shared_ptr<MemoryStore> small_store(int64_t pad_id) {
  auto store = std::make_shared<MemoryStore>(Vocabulary{.size = 100, .eos_id = 9, .pad_id = pad_id});
  store->add("a", {11, 12, 13, 14, 9});
  return store;
}

// Rows of three lengths, one of them filtered, as OLMo-core's collator and get_labels make a batch of them.
TEST(DatasetKinds, ABatchOfPaddedRowsIsThatOfTheCollator) {
  const json golden = test::data_golden("pieces.json");
  class Rows : public Dataset {
   public:
    Rows() {
      instances_ = sequence_length_ = 3;
      vocabulary_ = {.size = 1000, .eos_id = 999, .pad_id = 998};
      sources_ = {{.name = "rows", .instances = 3}};
    }
    void read(int64_t instance, Row& row) const override {
      const std::vector<Ids> tokens = {{1, 2, 3}, {4, 5}, {6}};
      const std::vector<Mask> masks = {{1, 0, 1}, {1, 1}, {1}};
      const auto i = static_cast<size_t>(instance);
      std::copy(tokens[i].begin(), tokens[i].end(), row.tokens.begin());
      std::copy(masks[i].begin(), masks[i].end(), row.label_mask.begin());
      row.filtered = instance == 1;
      pad(row, std::ssize(tokens[i]), vocabulary_);
    }
    std::string digest() const override { return {}; }
  };
  const Rows rows;
  const Batch batch = make_batch(rows, {0, 1, 2}, false);
  Ids inputs, labels;
  Mask masks, read;
  for (const auto& row : golden["collate"]["input_ids"]) inputs.insert(inputs.end(), row.begin(), row.end());
  for (const auto& row : golden["collate_labels"]) labels.insert(labels.end(), row.begin(), row.end());
  for (const auto& row : golden["collate"]["label_mask"]) {
    for (const bool value : row) masks.push_back(value);
  }
  for (int64_t id = 0; id < 3; ++id) {
    const OwnedRow row(rows, id);
    read.insert(read.end(), row.mask.begin(), row.mask.end());
  }
  std::replace(labels.begin(), labels.end(), -100, kNoTarget);
  EXPECT_EQ(batch.tokens, inputs);
  EXPECT_EQ(batch.targets, labels);
  EXPECT_EQ(read, masks);
  EXPECT_EQ(batch.filtered, (Mask{0, 1, 0}));
}

// Row 57: an instance of 5 tokens padded to 8 has 4 targets whatever id pads, 1 ("true") and 0 included, or EOS where there is no pad.
TEST(PaddedDataset, PaddingIsNoTargetWhateverItsId) {
  for (const int64_t pad_id : {1, 0, -1}) {
    const auto dataset = padded_dataset(small_store(pad_id), {.sequence_length = 8});
    const Batch batch = make_batch(*dataset, {0}, true);
    EXPECT_EQ(batch.labels, 4) << pad_id;
    EXPECT_EQ(batch.tokens[7], pad_id < 0 ? 9 : pad_id);
    EXPECT_EQ(OwnedRow(*dataset, 0).mask, (Mask{1, 1, 1, 1, 1, 0, 0, 0}));
    EXPECT_EQ(dataset->sources()[0].padding, 3);
  }
  // The mask, not the id: the EOS that ends the document is a target even when EOS pads.
  EXPECT_EQ(make_batch(*padded_dataset(small_store(-1), {.sequence_length = 8}), {0}, true).targets, (Ids{12, 13, 14, 9, -1, -1, -1, -1}));
}

TEST(PaddedDataset, EveryTokenIsInAnInstanceOrCounted) {
  for (const GoldenDataset& golden : test::golden_datasets()) {
    const auto dataset = golden.open();
    int64_t tokens = 0, slots = 0;
    for (const DatasetSource& source : dataset->sources()) {
      tokens += source.tokens - source.dropped;
      slots += source.instances * dataset->sequence_length() - source.padding;
    }
    EXPECT_EQ(tokens, slots) << golden.name;
    EXPECT_EQ(describe(*dataset).size(), dataset->sources().size());
  }
  const auto padded = test::golden_dataset("padded").open();
  EXPECT_EQ(describe(*padded)[0], "tokens/u16-0.npy: 8 instances of 16 tokens, 63 of them padding, 38 of 103 tokens are not used");
}

// Row 194: empty documents, an empty file, a batch of which everything is filtered.
TEST(DatasetKinds, EmptyFilesAndFilteredBatches) {
  auto store = std::make_shared<MemoryStore>(Vocabulary{.size = 100, .eos_id = 9, .pad_id = 0});
  store->add("empty", {});
  store->add("a", {9, 9, 5, 5, 5, 5, 9, 1});
  store->add("no document", {1, 2, 3, 4, 5, 6, 7, 8, 1});
  const RepetitionFilter filter{.max_period = 2, .max_count = 3};
  const auto padded = padded_dataset(store, {.sequence_length = 8, .filter = filter});
  EXPECT_EQ(padded->instances(), 3);
  EXPECT_EQ(padded->dropped_tokens(), 10);
  const Batch batch = make_batch(*padded, {2}, true);
  EXPECT_EQ(batch.labels, 0);
  EXPECT_EQ(batch.filtered, Mask{1});
  EXPECT_EQ(batch.targets, Ids(8, kNoTarget));
  EXPECT_EQ(make_batch(*padded, {0, 1}, true).labels, 0) << "a document of EOS alone has no target";
  EXPECT_EQ(describe(*padded)[2], "no document: 0 instances of 8 tokens, the last 9 of 9 tokens are not used (warning: no document in it)");
  const auto packed = packed_dataset(store, {.sequence_length = 8, .source_group_size = 3, .filter = filter});
  EXPECT_EQ(packed->instances(), 1);
  EXPECT_TRUE(OwnedRow(*packed, 0).row.filtered);
  EXPECT_EQ(interleaved_dataset(store, {.sequence_length = 8, .docs_per_instance = 2, .chunks_per_doc = 2})->instances(), 1);

  auto nothing = std::make_shared<MemoryStore>(Vocabulary{.size = 100, .eos_id = 9, .pad_id = 0});
  nothing->add("empty", {});
  nothing->add("no document", {1, 2, 3});
  EXPECT_THROW(padded_dataset(nothing, {.sequence_length = 8}), ConfigError);
  EXPECT_THROW(packed_dataset(nothing, {.sequence_length = 8}), ConfigError);
  EXPECT_THROW(interleaved_dataset(nothing, {.sequence_length = 8}), ConfigError);
  EXPECT_THROW(vsl_dataset(nothing, {.min_length = 2, .max_length = 8}), ConfigError);
  EXPECT_EQ(padded_dataset(nothing, {.sequence_length = 8, .documents = {.tail = Tail::kKeep}})->instances(), 1);
}

// Row 4: documents of 5, 5 and 3 tokens, instances of 8. Packing is of whole files, so no document waits for the next instance, and whatever
// instance a run goes on with, it finds the documents that the unbroken run finds.
TEST(PackedDataset, NoDocumentIsHeldBack) {
  auto store = std::make_shared<MemoryStore>(Vocabulary{.size = 100, .eos_id = 9, .pad_id = 0});
  store->add("a", {1, 1, 1, 1, 9, 2, 2, 2, 2, 9, 3, 3, 9});
  const auto whole = packed_dataset(store, {.sequence_length = 8});
  ASSERT_EQ(whole->instances(), 2);
  EXPECT_EQ(OwnedRow(*whole, 0).tokens, (Ids{1, 1, 1, 1, 9, 3, 3, 9}));
  EXPECT_EQ(OwnedRow(*whole, 1).tokens, (Ids{2, 2, 2, 2, 9, 0, 0, 0}));
  for (int64_t resume = 0; resume <= 2; ++resume) {
    const auto again = packed_dataset(store, {.sequence_length = 8});
    for (int64_t id = resume; id < 2; ++id) EXPECT_EQ(OwnedRow(*again, id).tokens, OwnedRow(*whole, id).tokens);
  }
}

TEST(PackedDataset, SequenceLengthIsAPowerOfTwoInOlmoCoresDialectOnly) {
  auto store = std::make_shared<MemoryStore>(Vocabulary{.size = 100, .eos_id = 9, .pad_id = 0});
  store->add("a", {1, 1, 1, 1, 9});
  EXPECT_EQ(packed_dataset(store, {.sequence_length = 6})->instances(), 1);
  EXPECT_EQ(message_of<ConfigError>([&] { packed_dataset(store, {.sequence_length = 6, .dialect = PackingDialect::kOlmoCore}); }),
            "recipe.data.sequence_length: found 6, expected a power of two for recipe.data.packing.dialect olmo-core");
  EXPECT_THROW(packed_dataset(store, {.sequence_length = 8, .source_group_size = 0}), ConfigError);
  EXPECT_THROW(packed_dataset(store, {.sequence_length = 1}), ConfigError);
}

TEST(InterleavedDataset, SettingsAreChecked) {
  const auto complaint = [&](const InterleavedSettings& settings) {
    return message_of<ConfigError>([&] { interleaved_dataset(small_store(0), settings); });
  };
  EXPECT_EQ(complaint({.sequence_length = 8, .docs_per_instance = 3}),
            "recipe.data.interleaved.documents: found 3, expected a divisor of recipe.data.sequence_length (8)");
  EXPECT_NE(complaint({.sequence_length = 8, .chunks_per_doc = 0}), "");
  EXPECT_NE(complaint({.sequence_length = 8, .docs_per_instance = 1, .exempt = {"b"}}).find("the first is a"), std::string::npos);
  EXPECT_EQ(complaint({.sequence_length = 8, .docs_per_instance = 1, .exempt = {"a"}}), "");
}

TEST(SourcePermutation, EqualsOlmoCoreAndOrdersTheStore) {
  const json golden_rows = test::data_golden("pieces.json")["source_permutation"];
  for (const json& row : golden_rows) {
    EXPECT_EQ(source_permutation(row["files"], row["source_permutation_seed"].get<uint64_t>()), row["order"].get<std::vector<int64_t>>());
  }
  const GoldenDataset golden = test::golden_dataset("fsl_masks_lens_filter");
  const auto permuted = permuted_store(golden.store, {2, 0, 3, 1});
  const auto dataset = fixed_dataset(permuted, 8);
  const auto plain = fixed_dataset(golden.store, 8);
  EXPECT_EQ(OwnedRow(*dataset, 0).tokens, OwnedRow(*plain, 0).tokens);
  EXPECT_EQ(OwnedRow(*dataset, 12).tokens, OwnedRow(*plain, 17).tokens);
  EXPECT_EQ(OwnedRow(*dataset, 12).mask, OwnedRow(*plain, 17).mask);
  EXPECT_NE(dataset->digest(), plain->digest());
  EXPECT_NE(dataset->digest(), fixed_dataset(permuted_store(golden.store, {2, 0, 1, 3}), 8)->digest());
}

TEST(DatasetKinds, DigestsSeeMetadataThatDecidesTheCut) {
  const auto store = small_store(0);
  const auto padded = padded_dataset(store, {.sequence_length = 8});
  EXPECT_EQ(padded->digest(), store->digest());
  EXPECT_THROW(padded_dataset(store, {.sequence_length = 8, .documents = {.boundaries = Boundaries::kCsv}}), DataError) << "a name without .npy";
}

}  // namespace
}  // namespace dz::data
