// inspect --instances as a person calls it: shards and recipes, JSON and text, exit codes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/run.h"
#include "data/golden_datasets.h"
#include "data/shards.h"
#include "train/trainer.h"

namespace dz {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<int32_t>;

using test::Outcome;

Outcome run(const std::string& arguments) { return test::deltazero("inspect " + arguments); }

class InspectInstances : public testing::Test {
 protected:
  InspectInstances() { test::write_raw(root_ / "shards", test::kCountingVocab, 1005, test::counting_shards(1)); }
  std::string shards() const { return (root_ / "shards").string(); }

  test::TemporaryDirectory root_;
};

TEST_F(InspectInstances, OfTokenShards) {
  const Json json = Json::parse(run(shards() + " --seq 8 --instances 4:6 --json").text);
  EXPECT_EQ(json["instances_in_all"], 11);
  EXPECT_EQ(json["sequence_length"], 8);
  ASSERT_EQ(json["instances"].size(), 2u);
  EXPECT_EQ(json["instances"][0]["id"], 4);
  EXPECT_EQ(json["instances"][0]["source"], "shard1");
  EXPECT_EQ(json["instances"][0]["tokens"], Json(Ids{1032, 1033, 1034, 1035, 1036, 1037, 1038, 1039}));
  EXPECT_EQ(json["instances"][1]["source"], "shard2");
  EXPECT_EQ(json["instances"][1]["tokens"][0], 2000);
  EXPECT_EQ(json["instances"][1]["label_mask"], Json(Ids(8, 1)));
  EXPECT_EQ(json["instances"][1]["filtered"], false);
  const Json first = Json::parse(run(shards() + " --seq 8 --instances 0 --json").text);
  EXPECT_EQ(first["instances"][0]["document_lengths"], Json(Ids{6, 2}));
  EXPECT_EQ(first["instances"].size(), 1u);
}

TEST_F(InspectInstances, AsTextWithALineForEachDocument) {
  EXPECT_EQ(run(shards() + " --seq 8 --instances 0").text,
            "instance 0   shard1   8 tokens, 7 targets   2 documents\n"
            "       0  1000 1001 1002 1003 1004 1005\n"
            "       6  1006 1007\n");
  fs::copy_file(DZ_GOLDEN "/tokenizer/mixed-512.json", root_ / "shards" / "tokenizer.json");
  const Outcome decoded = run(shards() + " --seq 8 --instances 0");
  EXPECT_EQ(decoded.code, 0);
  EXPECT_NE(decoded.text.find("       0  \""), std::string::npos) << decoded.text;
}

TEST_F(InspectInstances, OfARecipeAreThoseThatTrainReads) {
  const std::string config = DZ_SOURCE "/configs/contract.yaml";
  const Json json = Json::parse(run(config + " --instances 1:4 --json").text);
  train::Config loaded = train::load_config(config, {});
  ThreadPool pool(1);
  const auto dataset = train::open_data(loaded.recipe, {}, pool).dataset;
  ASSERT_EQ(json["instances"].size(), 3u);
  for (const Json& instance : json["instances"]) {
    EXPECT_EQ(instance["tokens"].get<Ids>(), test::OwnedRow(*dataset, instance["id"]).tokens);
    int64_t sum = 0;
    for (const int64_t length : instance["document_lengths"]) sum += length;
    EXPECT_EQ(sum, dataset->sequence_length());
  }
  EXPECT_NE(json["instances"][0]["tokens"], json["instances"][1]["tokens"]);
  // A run and a checkpoint keep the resolved recipe.
  fs::create_directories(root_ / "run");
  test::spill(root_ / "run" / "recipe.yaml", train::recipe_yaml(loaded.recipe));
  const Json of_run = Json::parse(run((root_ / "run").string() + " --instances 1:4 --json").text);
  EXPECT_EQ(of_run["instances"], json["instances"]);
  const Json reseeded = Json::parse(run((root_ / "run").string() + " --instances 1:4 --json --set recipe.data.seed=12345").text);
  EXPECT_NE(reseeded["instances"], json["instances"]);
}

TEST_F(InspectInstances, MistakesAreNamed) {
  for (const std::string range : {"11", "0:12", "5:5", "6:5", "-1:2", "a:b", "1:", ":3", "99999999999999999999", "1:2:3"}) {
    const Outcome outcome = run(shards() + " --seq 8 --instances=" + range);
    EXPECT_EQ(outcome.code, 64) << range;
    EXPECT_NE(outcome.text.find("--instances: found " + range + ", expected A:B with 0 <= A < B <= 11"), std::string::npos) << outcome.text;
  }
  EXPECT_EQ(run(shards() + " --instances 0").code, 64);
  EXPECT_EQ(run(shards() + " --seq 1 --instances 0").code, 64);
  EXPECT_EQ(run(shards() + " --seq 8").code, 64) << "--seq is for --instances";
  EXPECT_EQ(run(std::string(DZ_SOURCE) + "/configs/contract.yaml --seq 8 --instances 0").code, 64);
  EXPECT_EQ(run((root_ / "nothing").string() + " --instances 0").code, 66);
  EXPECT_EQ(run(shards() + " --seq 8 --instances 0 > /dev/full").code, 74);
}

}  // namespace
}  // namespace dz
