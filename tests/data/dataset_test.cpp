#include "data/dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkpoint/safetensors.h"
#include "data/loader.h"
#include "data/shards.h"

namespace dz::data {
namespace {

using test::message_of;
using test::TemporaryDirectory;
using Json = nlohmann::json;
using Ids = std::vector<int32_t>;

std::shared_ptr<const Dataset> open(const fs::path& directory, int64_t sequence_length) {
  return shard_dataset(std::make_shared<TokenShards>(directory), Split::kTrain, sequence_length);
}

Ids instance(const Dataset& dataset, int64_t id) {
  Ids tokens(static_cast<size_t>(dataset.length(id)));
  std::vector<uint8_t> mask(tokens.size(), 1);
  Row row{tokens, mask};
  dataset.read(id, row);
  return tokens;
}

// Rows 20, 21, 29: 40, 33, 17 and 5 tokens by 8 are 5, 4, 2 and 0 instances; their edges lie at 5, 9 and 11.
TEST(Dataset, CutsEachSourceAndDropsItsTail) {
  const TemporaryDirectory root;
  test::write_raw(root / "f1", test::kCountingVocab, 0, test::counting_shards(1));
  const auto dataset = open(root / "f1", 8);
  EXPECT_EQ(dataset->instances(), 11);
  EXPECT_EQ(dataset->dropped_tokens(), 0 + 1 + 1 + 5);
  std::vector<int64_t> firsts;
  for (const DatasetSource& source : dataset->sources()) firsts.push_back(source.first);
  EXPECT_EQ(firsts, (std::vector<int64_t>{0, 5, 9, 11}));
  int64_t id = 0;
  for (const auto& [shard, count] : {std::pair{1, 5}, {2, 4}, {3, 2}}) {
    for (int k = 0; k < count; ++k, ++id) {
      EXPECT_EQ(instance(*dataset, id).front(), 1000 * shard + 8 * k) << id;
      EXPECT_EQ(instance(*dataset, id).back(), 1000 * shard + 8 * k + 7) << id;
      EXPECT_EQ(dataset->source_of(id).name, "shard" + std::to_string(shard));
    }
  }
  const std::vector<std::string> lines = describe(*dataset);
  EXPECT_EQ(lines[1], "shard2: 4 instances of 8 tokens, the last 1 of 33 tokens are not used");
  EXPECT_EQ(lines[3], "shard4: 0 instances of 8 tokens, the last 5 of 5 tokens are not used (warning: shorter than one instance)");
}

TEST(Dataset, SequenceLongerThanTheDataSaysTheNumbers) {
  const TemporaryDirectory root;
  test::write_raw(root / "f1", test::kCountingVocab, 0, test::counting_shards(1));
  EXPECT_EQ(open(root / "f1", 40)->instances(), 1);
  const std::string message = message_of<ConfigError>([&] { open(root / "f1", 41); });
  EXPECT_NE(message.find("recipe.data.sequence_length: found 41, expected at most 40"), std::string::npos) << message;
  EXPECT_THROW(open(root / "f1", 1), ConfigError);
  EXPECT_THROW(shard_dataset(std::make_shared<TokenShards>(root / "f1"), Split::kHeldOut, 8), ConfigError);
}

// Row 48: the last instance of 70,000 uint16 tokens starts at 69,992.
TEST(Dataset, OffsetsAreNotOfTheTokensWidth) {
  const TemporaryDirectory root;
  test::RawSource source{.name = "s", .tokens = std::vector<uint32_t>(70000)};
  for (size_t i = 0; i < source.tokens.size(); ++i) source.tokens[i] = static_cast<uint32_t>(i % 65535);
  test::write_raw(root / "t", 65536, 65535, {source});
  const auto dataset = open(root / "t", 8);
  EXPECT_EQ(dataset->instances(), 8750);
  EXPECT_EQ(instance(*dataset, 8749).front(), 69992 % 65535);
}

std::vector<uint32_t> read_tokens(const fs::path& path, size_t width) {
  const std::string bytes = test::slurp(path);
  std::vector<uint32_t> tokens(bytes.size() / width);
  for (size_t i = 0; i < tokens.size(); ++i) std::memcpy(&tokens[i], bytes.data() + i * width, width);
  return tokens;
}

template <class T>
std::vector<T> read_raw(const checkpoint::TensorSource& source, const std::string& name) {
  const checkpoint::StoredTensor& tensor = source.at(name);
  std::vector<T> values(static_cast<size_t>(tensor.elements()));
  source.read(tensor, std::as_writable_bytes(std::span(values)));
  return values;
}

// Lengths of the documents of each instance, from the first visible positions.
std::vector<Ids> document_lengths(const Batch& batch) {
  std::vector<Ids> lengths(static_cast<size_t>(batch.instances));
  for (size_t at = 0; at < batch.first_visible.size(); ++at) {
    const auto position = static_cast<int32_t>(at % static_cast<size_t>(batch.sequence_length));
    Ids& of_instance = lengths[at / static_cast<size_t>(batch.sequence_length)];
    if (batch.first_visible[at] == position) of_instance.push_back(0);
    ++of_instance.back();
  }
  return lengths;
}

// OLMo-core's plain data set over the same files, one source each: inputs, labels and document lengths.
TEST(Dataset, EqualsOlmoCore) {
  const fs::path golden = DZ_GOLDEN "/data";
  const auto tensors = checkpoint::TensorSource::open(golden / "datasets.safetensors");
  int compared = 0;
  const Json rows = Json::parse(std::ifstream(golden / "datasets.json"))["datasets"];
  for (const Json& row : rows) {
    const std::string name = row["name"];
    if (name != "fsl" && name != "fsl_u32" && name != "fsl_same_file_twice") continue;
    const Json& args = row["args"];
    const TemporaryDirectory root;
    std::vector<test::RawSource> sources;
    for (const Json& path : row["paths"])
      sources.push_back(
          {.name = std::to_string(sources.size()), .tokens = read_tokens(golden / path.get<std::string>(), args["dtype"] == "uint16" ? 2 : 4)});
    test::write_raw(root / "t", args["vocab_size"], args["eos_token_id"], sources);
    const auto dataset = open(root / "t", args["sequence_length"]);
    ASSERT_EQ(dataset->instances(), row["length"]) << name;
    std::vector<int64_t> all;
    for (int64_t id = 0; id < dataset->instances(); ++id) all.push_back(id);
    const Batch batch = make_batch(*dataset, all, true);
    const auto inputs = read_raw<uint32_t>(tensors, name + ".input_ids");
    EXPECT_TRUE(std::equal(inputs.begin(), inputs.end(), batch.tokens.begin(), batch.tokens.end(), [](uint32_t a, int32_t b) {
      return a == static_cast<uint32_t>(b);
    })) << name;
    auto labels = read_raw<int32_t>(tensors, name + ".labels");
    EXPECT_EQ(std::count_if(labels.begin(), labels.end(), [](int32_t label) { return label >= 0; }), batch.labels);
    std::replace(labels.begin(), labels.end(), -100, kNoTarget);
    EXPECT_EQ(batch.targets, labels) << name;
    const std::string lengths_name = name == "fsl" ? "fsl_masks_lens_filter.doc_lens" : name + ".doc_lens";
    if (tensors.find(lengths_name)) {
      const auto padded = read_raw<int32_t>(tensors, lengths_name);
      const auto lengths = document_lengths(batch);
      const size_t width = padded.size() / lengths.size();
      for (size_t i = 0; i < lengths.size(); ++i) {
        Ids expected(padded.begin() + static_cast<int64_t>(i * width), padded.begin() + static_cast<int64_t>((i + 1) * width));
        expected.erase(std::remove(expected.begin(), expected.end(), 0), expected.end());
        EXPECT_EQ(lengths[i], expected) << name << " instance " << i;
      }
    }
    ++compared;
  }
  EXPECT_EQ(compared, 3);
}

TEST(Dataset, DocumentLengthsAsInOlmoCore) {
  int compared = 0;
  const Json rows = Json::parse(std::ifstream(DZ_GOLDEN "/data/pieces.json"))["document_lengths"];
  for (const Json& row : rows) {
    if (!row["bos"].is_null()) continue;
    const TemporaryDirectory root;
    const auto tokens = row["tokens"].get<std::vector<uint32_t>>();
    test::write_raw(root / "t", 1000, row["eos"], {{.name = "s", .tokens = tokens}});
    const Batch batch = make_batch(*open(root / "t", static_cast<int64_t>(tokens.size())), {0}, true);
    EXPECT_EQ(document_lengths(batch)[0], row["doc_lens"].get<Ids>()) << row["tokens"];
    ++compared;
  }
  EXPECT_GE(compared, 15);
}

TEST(GeneratedDataset, IsAFunctionOfItsSettings) {
  const auto make = [](uint64_t seed, int64_t tokens = 5000, int64_t documents = 70) {
    return generated_dataset({.tokens = tokens, .documents = documents}, 301, 7, seed, 50);
  };
  const auto dataset = make(1);
  EXPECT_EQ(dataset->instances(), 100);
  EXPECT_EQ(dataset->digest(), make(1)->digest());
  EXPECT_NE(dataset->digest(), make(2)->digest());
  EXPECT_NE(dataset->digest(), make(1, 5050)->digest());
  EXPECT_NE(dataset->digest(), make(1, 5000, 71)->digest());
  int64_t ends = 0;
  std::map<std::pair<int32_t, int32_t>, int64_t> pairs;
  std::map<int32_t, int64_t> singles;
  for (int64_t id = 0; id < 100; ++id) {
    const Ids tokens = instance(*dataset, id);
    for (size_t i = 0; i < tokens.size(); ++i) {
      ASSERT_TRUE(tokens[i] >= 0 && tokens[i] < 301);
      ends += tokens[i] == 7;
      ++singles[tokens[i]];
      if (i > 0) ++pairs[{tokens[i - 1], tokens[i]}];
    }
  }
  EXPECT_EQ(ends, 70);
  // Structure to learn: a token has few successors, so far fewer pairs occur than if tokens were independent.
  EXPECT_GT(singles.size(), 100u);
  EXPECT_LT(pairs.size(), 2000u);
}

TEST(GeneratedDataset, SettingsThatDoNotFitAreNamed) {
  const auto message = [](GeneratedSettings settings, int64_t vocab, int64_t eos, int64_t length) {
    return message_of<ConfigError>([&] { generated_dataset(settings, vocab, eos, 0, length); });
  };
  EXPECT_EQ(message({.tokens = 4, .documents = 2}, 2, 1, 2), "");
  EXPECT_NE(message({.tokens = 4, .documents = 3}, 2, 1, 2), "");
  EXPECT_NE(message({.tokens = 4, .documents = 0}, 2, 1, 2), "");
  EXPECT_NE(message({.tokens = int64_t{1} << 40, .documents = 1}, 2, 1, 2), "");
  EXPECT_NE(message({.tokens = 4, .documents = 1}, 1, 0, 2), "");
  EXPECT_NE(message({.tokens = 4, .documents = 1}, 10, 10, 2), "");
  EXPECT_EQ(message({.tokens = 4, .documents = 1}, 10, 0, 5), "recipe.data.sequence_length: found 5, expected at most 4, the generated tokens");
}

}  // namespace
}  // namespace dz::data
