// Packings on disk: ours, and OLMo-core's own that are followed.
#include "data/packing_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "data/dataset_differences.h"
#include "data/dataset_kinds.h"

namespace dz::data {
namespace {

using test::differences;
using test::GoldenDataset;
using test::GoldenTensors;
using test::MemoryStore;
using test::message_of;
using test::OwnedRow;
using test::TemporaryDirectory;

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

}  // namespace
}  // namespace dz::data
