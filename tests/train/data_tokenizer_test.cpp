// The tokenizer that a run's checkpoints carry is the one of its data, or the run does not start.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/thread_pool.h"
#include "data/shards.h"
#include "train/config.h"
#include "train/training_data.h"

namespace dz::train {
namespace {

using Sets = std::vector<std::string>;

const std::string kTokenizer = DZ_GOLDEN "/tokenizer/mixed-512.json";

class DataTokenizer : public testing::Test {
 protected:
  DataTokenizer() { dz::test::write_raw(root_ / "shards", dz::test::kCountingVocab, 1005, dz::test::counting_shards(1)); }

  fs::path beside() const { return root_ / "shards" / "tokenizer.json"; }
  void name_in_manifest(const std::string& sha256) const {
    data::TokenManifest manifest = data::parse_token_manifest(read_file(root_ / "shards" / "manifest.json"), "manifest");
    manifest.tokenizer_sha256 = sha256;
    dz::test::spill(root_ / "shards" / "manifest.json", data::to_json(manifest));
  }
  TrainingData open(const Sets& more = {}) const {
    Sets sets{"recipe.data.source=shards", "recipe.data.shards=" + (root_ / "shards").string(), "recipe.data.sequence_length=8",
              "recipe.model.vocab_size=49152", "recipe.batch=4"};
    sets.insert(sets.end(), more.begin(), more.end());
    Config config = load_config(DZ_SOURCE "/configs/contract.yaml", sets);
    ThreadPool pool(1);
    return open_data(config.recipe, {}, pool);
  }

  dz::test::TemporaryDirectory root_;
};

TEST_F(DataTokenizer, BesideTheShardsIsTheOneThatTheManifestNames) {
  const std::string good = read_file(kTokenizer);
  dz::test::spill(beside(), good);
  name_in_manifest(sha256_hex(good));
  EXPECT_EQ(open().tokenizer_json, good);
  EXPECT_TRUE(open().notes.empty());
  // One byte more is another file, though it means the same.
  dz::test::spill(beside(), good + "\n");
  const std::string message = dz::test::message_of<DataError>([&] { open(); });
  for (const std::string& part : {beside().string(), sha256_hex(good), sha256_hex(good + "\n"), std::string("put back")})
    EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST_F(DataTokenizer, ThatIsGoneIsSaid) {
  EXPECT_TRUE(open().notes.empty()) << "the manifest names none";
  name_in_manifest(std::string(64, 'a'));
  const TrainingData data = open();
  EXPECT_EQ(data.tokenizer_json, "");
  ASSERT_EQ(data.notes.size(), 1u);
  EXPECT_NE(data.notes[0].find(beside().string()), std::string::npos) << data.notes[0];
}

TEST_F(DataTokenizer, ThatNoManifestNamesMustBeOne) {
  dz::test::spill(beside(), read_file(kTokenizer));
  EXPECT_EQ(open().tokenizer_json, read_file(kTokenizer));
  dz::test::spill(beside(), "garbage");
  EXPECT_NE(dz::test::message_of<DataError>([&] { open(); }).find(beside().string()), std::string::npos);
}

TEST_F(DataTokenizer, OfTheRecipeIsReadAndFitsTheVocabulary) {
  const std::string key = "recipe.data.tokens.tokenizer";
  const Sets given{key + "=" + kTokenizer};
  EXPECT_EQ(open(given).tokenizer_json, read_file(kTokenizer));
  // It stands in for one that is gone, if it is that one.
  name_in_manifest(sha256_hex(read_file(kTokenizer)));
  EXPECT_TRUE(open(given).notes.empty());
  name_in_manifest(std::string(64, 'a'));
  EXPECT_NE(dz::test::message_of<ConfigError>([&] { open(given); }).find(key + ": " + kTokenizer), std::string::npos);

  const fs::path garbage = root_ / "garbage.json";
  dz::test::spill(garbage, "{}");
  const std::string unread = dz::test::message_of<DataError>([&] { open({key + "=" + garbage.string()}); });
  EXPECT_NE(unread.find(key + ": " + garbage.string()), std::string::npos) << unread;

  const fs::path tokens = fs::path(DZ_GOLDEN) / "data" / "tokens" / "u16-0.npy";
  const auto files = [&](const std::string& size) {
    return Sets{"recipe.data.source=files",
                "recipe.data.shards=''",
                "recipe.data.files=[" + tokens.string() + "]",
                "recipe.data.tokens.eos_id=1",
                "recipe.data.dtype=uint16",
                "recipe.model.vocab_size=" + size,
                key + "=" + DZ_GOLDEN "/tokenizer/mixed-2048.json"};
  };
  const std::string large = dz::test::message_of<ConfigError>([&] { open(files("1000")); });
  EXPECT_NE(large.find(key), std::string::npos) << large;
  EXPECT_NE(large.find("found a tokenizer with ids up to 2047, expected ids below the vocabulary size 1000"), std::string::npos) << large;
}

}  // namespace
}  // namespace dz::train
