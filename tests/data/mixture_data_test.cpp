#include "data/mixture_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "base/error.h"
#include "base/thread_pool.h"
#include "checkpoint/safetensors.h"
#include "data/fingerprint.h"
#include "data/goldens.h"
#include "data/temporary.h"

namespace dz::data {
namespace {

using nlohmann::json;
using test::message_of;

std::vector<int32_t> instance(const Dataset& dataset, int64_t id) {
  std::vector<int32_t> tokens(static_cast<size_t>(dataset.length(id)));
  std::vector<uint8_t> mask(tokens.size(), 1);
  Row row{tokens, mask};
  dataset.read(id, row);
  return tokens;
}

TEST(Mixture, OlmoCoreMixtureHasItsInstancesOffsetsAndFingerprint) {
  const json all = test::data_golden("vsl_mixture.json");
  const json& golden = all["mixture_dataset"];
  MixtureSpec spec{.sources = {},
                   .requested_tokens = golden["requested_tokens"],
                   .sequence_length = golden["sequence_length"],
                   .batch_tokens = golden["global_batch_size"],
                   .dialect = MixtureDialect::kOlmoCore};
  for (const json& source : golden["sources"]) {
    MixtureSource item{.name = source[0], .ratio = source[1], .paths = {}, .max_repetition = source[2]};
    for (const std::string path : source[3]) item.paths.push_back(DZ_GOLDEN "/data/" + path);
    spec.sources.push_back(item);
  }
  const Vocabulary dolma2{.size = 100278, .eos_id = 100257, .pad_id = 100277};
  const Mixture mixture = open_mixture(spec, {.paths = {}, .labels = {}, .masks = {}, .vocabulary = dolma2, .cache_directory = {}});
  ASSERT_EQ(mixture.dataset->instances(), golden["length"]);
  for (size_t i = 0; i < golden["offsets"].size(); ++i) {
    const DatasetSource& source = mixture.dataset->sources()[i];
    EXPECT_EQ(json::array({source.first, source.first + source.instances}), golden["offsets"][i]);
    EXPECT_EQ(mixture.store->entry(static_cast<int64_t>(i)).tokens, golden["entries"][i][2]);
  }
  EXPECT_EQ(olmo_core_fingerprint("NumpyFSLDatasetMixture", fixed_fields(dolma2, TokenType::kUint32, 0), fingerprint_files(*mixture.store)),
            golden["fingerprint"]);

  const auto tensors = checkpoint::TensorSource::open(DZ_GOLDEN "/data/datasets.safetensors");
  const auto tensor =
      std::find_if(tensors.tensors().begin(), tensors.tensors().end(), [](const auto& item) { return item.name == "mixture.input_ids"; });
  ASSERT_NE(tensor, tensors.tensors().end());
  std::vector<int32_t> expected(static_cast<size_t>(tensor->bytes) / 4);
  tensors.read(*tensor, std::as_writable_bytes(std::span(expected)));
  std::vector<int32_t> found;
  for (int64_t id = 0; id < mixture.dataset->instances(); ++id) {
    const std::vector<int32_t> row = instance(*mixture.dataset, id);
    found.insert(found.end(), row.begin(), row.end());
  }
  EXPECT_EQ(found, expected);
}

// Files whose tokens say their place: 1000 * (number from 1) + offset.
class Sampled : public ::testing::Test {
 protected:
  std::string file(int number, uint32_t tokens) {
    const std::filesystem::path path = directory / ("part-" + std::to_string(number));
    std::vector<uint32_t> ids;
    for (uint32_t i = 0; i < tokens; ++i) ids.push_back(1000 * static_cast<uint32_t>(number) + i);
    std::string bytes(ids.size() * 4, '\0');
    std::memcpy(bytes.data(), ids.data(), bytes.size());
    test::spill(path, bytes);
    return path.string();
  }
  Mixture open(const MixtureSpec& spec) {
    return open_mixture(spec, {.paths = {}, .labels = {}, .masks = {}, .vocabulary = {.size = 49152, .eos_id = 0}, .cache_directory = {}});
  }
  // First tokens of all instances, which are whole and aligned.
  std::vector<int32_t> places(const Dataset& dataset) {
    std::vector<int32_t> out;
    for (int64_t id = 0; id < dataset.instances(); ++id) {
      const std::vector<int32_t> row = instance(dataset, id);
      for (size_t i = 0; i < row.size(); ++i) EXPECT_EQ(row[i], row[0] + static_cast<int32_t>(i));
      EXPECT_EQ(row[0] % 1000 % 8, 0);
      out.push_back(row[0]);
    }
    return out;
  }
  test::TemporaryDirectory directory;
};

TEST_F(Sampled, AMixThatRoundsDownWouldBeShortAndOursIsNot) {
  MixtureSpec spec{.sources = {}, .requested_tokens = 96, .sequence_length = 8, .batch_tokens = 32};
  int number = 1;
  for (const int asked : {20, 20, 20, 20, 16}) {
    spec.sources.push_back({.name = "s" + std::to_string(number), .ratio = asked / 96.0, .paths = {file(number, 40)}});
    ++number;
  }
  const Mixture mixture = open(spec);
  std::vector<int64_t> counts;
  for (const DatasetSource& source : mixture.dataset->sources()) counts.push_back(source.instances);
  EXPECT_EQ(counts, (std::vector<int64_t>{3, 3, 2, 2, 2}));
  const std::vector<int32_t> found = places(*mixture.dataset);
  EXPECT_EQ(std::set<int32_t>(found.begin(), found.end()).size(), 12U);
  EXPECT_EQ(mixture.dataset->source_of(11).name, "s5");
}

TEST_F(Sampled, HalfOfAFileIsASeededSampleAndNotItsHead) {
  MixtureSpec spec{.sources = {{.name = "a", .ratio = 1, .paths = {file(1, 80), file(2, 5)}, .max_source_fraction = 1}},
                   .requested_tokens = 40,
                   .sequence_length = 8,
                   .batch_tokens = 40};
  std::set<std::vector<int32_t>> samples;
  int heads = 0;
  for (spec.seed = 0; spec.seed < 20; ++spec.seed) {
    const Mixture mixture = open(spec);
    std::vector<int32_t> found = places(*mixture.dataset);
    EXPECT_EQ(found, places(*open(spec).dataset));
    std::sort(found.begin(), found.end());
    EXPECT_EQ(std::set<int32_t>(found.begin(), found.end()).size(), 5U);
    heads += found.back() == 1032 ? 1 : 0;
    samples.insert(found);
    ASSERT_EQ(mixture.notes.size(), 1U);
    EXPECT_NE(mixture.notes[0].find("part-2: its 5 tokens are less than an instance of 8"), std::string::npos);
  }
  EXPECT_GT(samples.size(), 10U);  // of 252 possible ones
  EXPECT_LT(heads, 5);
}

TEST_F(Sampled, EveryInstanceComesOnceBeforeAnyComesAgain) {
  MixtureSpec spec{.sources = {{.name = "a", .ratio = 1, .paths = {file(1, 40), file(2, 33), file(3, 17)}, .max_repetition = 3}},
                   .requested_tokens = 8 * 26,
                   .sequence_length = 8,
                   .batch_tokens = 8 * 26};
  const std::vector<int32_t> found = places(*open(spec).dataset);
  ASSERT_EQ(found.size(), 26U);  // 11 + 11 + 4
  for (const size_t first : {0, 11})
    EXPECT_EQ(std::set<int32_t>(found.begin() + static_cast<int>(first), found.begin() + static_cast<int>(first) + 11).size(), 11U);
  EXPECT_EQ(std::set<int32_t>(found.begin() + 22, found.end()).size(), 4U);
}

TEST_F(Sampled, AFractionUsesTheSameInstancesInEveryRound) {
  MixtureSpec spec{.sources = {{.name = "a", .ratio = 1, .paths = {file(1, 80)}, .max_repetition = 4, .max_source_fraction = 0.5}},
                   .requested_tokens = 8 * 18,
                   .sequence_length = 8,
                   .batch_tokens = 8 * 18};
  std::map<int32_t, int> counts;
  for (const int32_t place : places(*open(spec).dataset)) ++counts[place];
  EXPECT_EQ(counts.size(), 5U);
  for (const auto& [place, count] : counts) EXPECT_TRUE(count == 3 || count == 4) << place;
}

TEST_F(Sampled, DigestCoversChoiceAndContents) {
  MixtureSpec spec{
      .sources = {{.name = "a", .ratio = 1, .paths = {file(1, 80), file(2, 80)}}}, .requested_tokens = 80, .sequence_length = 8, .batch_tokens = 80};
  for (const MixtureDialect dialect : {MixtureDialect::kSampled, MixtureDialect::kOlmoCore}) {
    spec.dialect = dialect;
    const std::string digest = open(spec).dataset->digest();
    EXPECT_EQ(open(spec).dataset->digest(), digest);
    MixtureSpec other = spec;
    other.requested_tokens = other.batch_tokens = 88;
    EXPECT_NE(open(other).dataset->digest(), digest);
    other = spec;
    other.seed = 1;
    EXPECT_EQ(open(other).dataset->digest() == digest, dialect == MixtureDialect::kOlmoCore);  // it has no sample
  }
  const Mixture before = open(spec);
  const std::string run = before.store->manifest_json();
  std::string bytes = test::slurp(spec.sources[0].paths[1]);
  bytes[0] ^= 1;
  test::spill(spec.sources[0].paths[1], bytes);
  EXPECT_NE(open(spec).dataset->digest(), before.dataset->digest());
  const std::vector<std::string> lines = file_differences(run, open(spec).store->manifest_json());
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find("part-2: changed content"), std::string::npos);
}

TEST_F(Sampled, AMixtureThatIsShortSaysSo) {
  MixtureSpec spec{.sources = {{.name = "a", .ratio = 1, .paths = {file(1, 44), file(2, 46), file(3, 6)}}},
                   .requested_tokens = 96,
                   .sequence_length = 8,
                   .batch_tokens = 32};
  EXPECT_NE(message_of<ConfigError>([&] { open(spec); }).find("12 instances needed, 10 possible"), std::string::npos);
  spec.dialect = MixtureDialect::kOlmoCore;
  const Mixture mixture = open(spec);
  EXPECT_EQ(mixture.dataset->instances(), 10);  // as there
  EXPECT_NE(mixture.notes.back().find("10 instances, its steps need 12"), std::string::npos);
  EXPECT_THROW(mixture_store({.sources = spec.sources, .requested_tokens = 96, .sequence_length = 8, .batch_tokens = 32},
                             {.paths = {}, .labels = {}, .masks = {}, .vocabulary = {.size = 49152}, .cache_directory = {}}),
               ConfigError);
}

}  // namespace
}  // namespace dz::data
