#include "data/dataset_kinds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "data/document_table.h"
#include "data/golden_datasets.h"
#include "data/loader.h"
#include "data/packing_cache.h"

namespace dz::data {
namespace {

using nlohmann::json;
using test::GoldenDataset;
using test::GoldenTensors;
using test::MemoryStore;
using test::message_of;
using test::OwnedRow;
using test::TemporaryDirectory;
using Ids = std::vector<int32_t>;
using Mask = std::vector<uint8_t>;

// Lengths of the documents of an instance as document masks have them.
std::vector<int64_t> visible_lengths(const Batch& batch, int64_t instance) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < batch.sequence_length; ++i) {
    if (batch.first_visible[static_cast<size_t>(instance * batch.sequence_length + i)] == i) lengths.push_back(0);
    ++lengths.back();
  }
  return lengths;
}

// What of a golden data set differs from `dataset`; empty when nothing does.
std::vector<std::string> differences(const GoldenDataset& golden, const Dataset& dataset, const GoldenTensors& tensors) {
  std::vector<std::string> found;
  const std::string& name = golden.name;
  if (dataset.instances() != golden.row["length"].get<int64_t>()) return {"length"};
  const Batch batch = make_batch(dataset, test::all_instances(dataset), true);
  const auto inputs = tensors.read<uint32_t>(name + ".input_ids");
  if (!std::equal(inputs.begin(), inputs.end(), batch.tokens.begin(), batch.tokens.end(),
                  [](uint32_t a, int32_t b) { return a == static_cast<uint32_t>(b); }))
    found.push_back("input_ids");
  auto labels = tensors.read<int32_t>(name + ".labels");
  std::replace(labels.begin(), labels.end(), -100, kNoTarget);
  if (batch.targets != labels) found.push_back("labels");
  Mask label_mask, instance_mask;
  std::vector<std::vector<int64_t>> lengths;
  for (int64_t id = 0; id < dataset.instances(); ++id) {
    const OwnedRow row(dataset, id);
    label_mask.insert(label_mask.end(), row.mask.begin(), row.mask.end());
    instance_mask.push_back(row.row.filtered ? 0 : 1);
    lengths.push_back(document_lengths(row.tokens, dataset.vocabulary()));
    if (lengths.back() != visible_lengths(batch, id)) found.push_back("first_visible");
  }
  if (tensors.has(name + ".label_mask") && label_mask != tensors.read<uint8_t>(name + ".label_mask")) found.push_back("label_mask");
  const Mask expected = tensors.has(name + ".instance_mask") ? tensors.read<uint8_t>(name + ".instance_mask") : Mask(instance_mask.size(), 1);
  if (instance_mask != expected) found.push_back("instance_mask");
  if (tensors.has(name + ".doc_lens")) {
    const auto cumulative = tensors.read<int32_t>(name + ".cu_doc_lens");
    if (cumulative_lengths(lengths) != std::vector<int64_t>(cumulative.begin(), cumulative.end())) found.push_back("cu_doc_lens");
    const auto padded = tensors.read<int32_t>(name + ".doc_lens");
    const size_t width = padded.size() / lengths.size();
    for (size_t i = 0; i < lengths.size(); ++i) {
      lengths[i].resize(width, 0);
      if (!std::equal(lengths[i].begin(), lengths[i].end(), padded.begin() + static_cast<int64_t>(i * width))) found.push_back("doc_lens");
    }
  }
  return found;
}

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

// The files of an OLMo-core run, written from its recorded arrays; `change` may damage one.
void write_olmo_core_caches(const GoldenDataset& golden, const GoldenTensors& tensors, const fs::path& directory) {
  fs::create_directories(directory);
  const PackedSettings settings = golden.packed();
  const std::vector<std::string> extra = {std::string(name_of(settings.long_documents)), "uint64"};
  const auto entries = std::span(golden.store->entries());
  const auto group_size = static_cast<size_t>(settings.source_group_size);
  for (size_t first = 0, group = 0; first < entries.size(); first += group_size, ++group) {
    const auto files = entries.subspan(first, std::min(group_size, entries.size() - first));
    for (const std::string_view kind : kPackingFiles) {
      const auto values = tensors.read<int64_t>(golden.name + ".cache" + std::to_string(group) + "." + std::string(kind));
      test::spill(directory / (std::string(kind) + "-" + olmo_core_cache_suffix(golden.length, files, extra) + ".npy"),
                  {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t)});
    }
  }
}

TEST(PackingCache, HoldsWhatOlmoCoreWrote) {
  const GoldenTensors tensors;
  for (const GoldenDataset& golden : test::golden_datasets()) {
    if (golden.kind != "NumpyPackedFSLDataset") continue;
    const TemporaryDirectory root;
    PackedSettings settings = golden.packed();
    settings.cache_directory = root / "ours";
    packed_dataset(golden.store, settings);
    // The same bytes as in the recorded arrays, under a name of ours.
    std::multiset<std::string> ours, theirs;
    for (const auto& file : fs::directory_iterator(root / "ours")) ours.insert(test::slurp(file.path()));
    write_olmo_core_caches(golden, tensors, root / "theirs");
    for (const auto& file : fs::directory_iterator(root / "theirs")) theirs.insert(test::slurp(file.path()));
    EXPECT_EQ(ours, theirs) << golden.name;
  }
}

TEST(PackingCache, OlmoCoresOwnAreFollowed) {
  const GoldenTensors tensors;
  const GoldenDataset golden = test::golden_dataset("packed_group_2");
  const TemporaryDirectory root;
  PackedSettings settings = golden.packed();
  settings.olmo_core_caches = root / "work";
  EXPECT_THROW(packed_dataset(golden.store, settings), DataError);
  write_olmo_core_caches(golden, tensors, root / "work" / "dataset-common");
  const auto followed = packed_dataset(golden.store, settings);
  EXPECT_EQ(differences(golden, *followed, tensors), std::vector<std::string>());
  EXPECT_NE(followed->digest(), golden.open()->digest()) << "the files decide the cut";
  settings.dialect = PackingDialect::kStable;
  EXPECT_THROW(packed_dataset(golden.store, settings), ConfigError);

  // Another order of two documents of equal length, as a NumPy on another CPU would have it, is followed too.
  settings.dialect = PackingDialect::kOlmoCore;
  const std::string digest = followed->digest();
  for (const auto& file : fs::directory_iterator(root / "work" / "dataset-common")) {
    if (!file.path().filename().string().starts_with("document-indices")) continue;
    std::string bytes = test::slurp(file.path());
    auto* values = reinterpret_cast<uint64_t*>(bytes.data());
    for (size_t i = 0; i + 3 < bytes.size() / 8; i += 2) {
      if (values[i + 1] - values[i] != values[i + 3] - values[i + 2]) continue;
      std::swap_ranges(values + i, values + i + 2, values + i + 2);
      break;
    }
    test::spill(file.path(), bytes);
    break;
  }
  const auto swapped = packed_dataset(golden.store, settings);
  EXPECT_NE(swapped->digest(), digest);
  EXPECT_EQ(differences(golden, *swapped, tensors).front(), "input_ids");
}

TEST(PackingCache, EveryDamageOfOlmoCoresFilesIsRefused) {
  const GoldenTensors tensors;
  const GoldenDataset golden = test::golden_dataset("packed_truncate");
  const auto refused = [&](const std::string& kind, const std::function<void(std::string&)>& damage) {
    const TemporaryDirectory root;
    write_olmo_core_caches(golden, tensors, root / "c");
    PackedSettings settings = golden.packed();
    settings.olmo_core_caches = root / "c";
    std::vector<fs::path> files;
    for (const auto& file : fs::directory_iterator(root / "c")) {
      if (file.path().filename().string().starts_with(kind)) files.push_back(file.path());
    }
    std::sort(files.begin(), files.end());
    std::string bytes = test::slurp(files.front());
    damage(bytes);
    test::spill(files.front(), bytes);
    return message_of<DataError>([&] { packed_dataset(golden.store, settings); });
  };
  const auto word = [](std::string& bytes, size_t i) -> uint64_t& { return reinterpret_cast<uint64_t*>(bytes.data())[i]; };
  EXPECT_EQ(refused("document-indices", [](std::string&) {}), "");
  EXPECT_NE(refused("document-indices", [](std::string& b) { b.pop_back(); }).find("a multiple of 16"), std::string::npos);
  EXPECT_NE(refused("document-indices", [](std::string& b) { b.resize(b.size() - 16); }), "");
  EXPECT_NE(refused("document-indices", [&](std::string& b) { word(b, 1) = 1u << 30; }).find("tokens of"), std::string::npos);
  EXPECT_NE(refused("document-indices", [&](std::string& b) { word(b, 1) = word(b, 0); }), "");
  EXPECT_NE(refused("document-indices", [&](std::string& b) { word(b, 0) = UINT64_MAX; }), "");
  EXPECT_NE(refused("documents-by-instance", [&](std::string& b) { word(b, 0) = word(b, 1); }).find("each document once"), std::string::npos);
  EXPECT_NE(refused("documents-by-instance", [&](std::string& b) { word(b, 0) = UINT64_MAX; }), "");
  EXPECT_NE(refused("instance-offsets", [&](std::string& b) { word(b, 0) = 1; }), "");
  EXPECT_NE(refused("instance-offsets", [&](std::string& b) { word(b, b.size() / 8 - 1) = UINT64_MAX; }), "");
  EXPECT_NE(refused("instance-offsets", [](std::string& b) { b.resize(b.size() - 16); }), "");
  // Two instances joined: too full.
  EXPECT_NE(refused("instance-offsets",
                    [&](std::string& b) {
                      word(b, 1) = word(b, 3);
                      b.erase(16, 16);
                    })
                .find("tokens in instance 0, expected at most 32"),
            std::string::npos);
}

// Row 12: another length, EOS, BOS, width or content never finds an old packing. Row 13: the whole packing is stored, whatever the batch.
TEST(PackingCache, IsKeyedByAllThatDecidesIt) {
  const TemporaryDirectory root;
  const auto store = [](int64_t eos, int64_t bos, TokenType type, int32_t token) {
    auto made = std::make_shared<MemoryStore>(Vocabulary{.size = 100, .eos_id = eos, .bos_id = bos}, type);
    made->add("a", {1, 2, 9, 3, 8, 9, 4, 5, 6, token, 9, 8});
    return made;
  };
  const auto count = [&] { return std::distance(fs::directory_iterator(root / "c"), fs::directory_iterator()); };
  const auto open = [&](const std::shared_ptr<const TokenStore>& tokens, PackedSettings settings) {
    settings.cache_directory = root / "c";
    return packed_dataset(tokens, settings);
  };
  const PackedSettings settings{.sequence_length = 8};
  open(store(9, -1, TokenType::kUint16, 7), settings);
  EXPECT_EQ(count(), 3);
  open(store(9, -1, TokenType::kUint16, 7), settings);
  EXPECT_EQ(count(), 3);
  int64_t expected = 3;
  const auto adds_three = [&](const std::shared_ptr<const TokenStore>& tokens, const PackedSettings& with) {
    open(tokens, with);
    EXPECT_EQ(count(), expected += 3);
  };
  adds_three(store(8, -1, TokenType::kUint16, 7), settings);
  adds_three(store(9, 3, TokenType::kUint16, 7), settings);
  adds_three(store(9, -1, TokenType::kUint32, 7), settings);
  adds_three(store(9, -1, TokenType::kUint16, 6), settings);
  adds_three(store(9, -1, TokenType::kUint16, 7), {.sequence_length = 16});
  adds_three(store(9, -1, TokenType::kUint16, 7), {.sequence_length = 8, .long_documents = LongDocuments::kFragment});
  adds_three(store(9, -1, TokenType::kUint16, 7), {.sequence_length = 8, .dialect = PackingDialect::kOlmoCore});
  adds_three(store(9, -1, TokenType::kUint16, 7), {.sequence_length = 8, .documents = {.tail = Tail::kKeep}});

  // A damaged one is made anew.
  const auto before = open(store(9, -1, TokenType::kUint16, 7), settings);
  for (const auto& file : fs::directory_iterator(root / "c")) test::spill(file.path(), "damaged!");
  const auto after = open(store(9, -1, TokenType::kUint16, 7), settings);
  for (int64_t id = 0; id < before->instances(); ++id) EXPECT_EQ(OwnedRow(*after, id).tokens, OwnedRow(*before, id).tokens);
  EXPECT_EQ(after->instances(), before->instances());
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
