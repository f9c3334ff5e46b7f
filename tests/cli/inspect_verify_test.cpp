// inspect and verify as a person calls them: output and exit codes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "checkpoint/small_state.h"
#include "cli/run.h"

namespace dz {
namespace {

using checkpoint::SmallState;
using Json = nlohmann::json;

using test::Outcome;

Outcome run(const std::string& arguments) { return test::deltazero(arguments); }

class InspectVerify : public testing::Test {
 protected:
  InspectVerify() {
    ThreadPool pool(1);
    for (const char* name : {"a", "b"})
      for (const int64_t step : {2, 4}) saved_ = checkpoint::save(scratch_ / name / "checkpoints", SmallState(step).snapshot(), 0, pool);
  }
  std::string path(const std::string& name) const { return (scratch_ / name).string(); }
  static bool has(const Outcome& outcome, const std::string& part) { return outcome.text.find(part) != std::string::npos; }

  Scratch scratch_{memory_directory()};
  checkpoint::Saved saved_;
};

TEST_F(InspectVerify, InspectsARun) {
  const Json json = Json::parse(run("inspect " + path("a") + " --json").text);
  EXPECT_EQ(json["step"], 4);
  EXPECT_EQ(json["digest"]["parameters"].get<std::string>(), saved_.digests.parameters.total.hex());
  EXPECT_EQ(json["digest"]["moments"].get<std::string>(), saved_.digests.moments.total.hex());
  EXPECT_EQ(json["digest"]["trainer"].get<std::string>(), saved_.digests.trainer.hex());
  EXPECT_EQ(json["parameters"], 62);
  EXPECT_EQ(json["tensors"].size(), 4u);
  EXPECT_TRUE(has(run("inspect " + path("a")), "step 4   newest complete of 2"));
}

TEST_F(InspectVerify, InspectSaysWhatARunSkipped) {
  fs::remove(scratch_ / "a/checkpoints/step-4/trainer.json");
  const Json json = Json::parse(run("inspect --json " + path("a")).text);
  EXPECT_EQ(json["step"], 2);
  EXPECT_EQ(json["skipped"][0]["name"].get<std::string>(), "step-4");
  EXPECT_NE(json["skipped"][0]["why"].get<std::string>().find("trainer.json: missing"), std::string::npos);
}

TEST_F(InspectVerify, InspectsOneCheckpointAndRefusesADamagedOne) {
  const std::string checkpoint = path("a/checkpoints/step-2");
  EXPECT_EQ(Json::parse(run("inspect --json " + checkpoint).text)["step"], 2);
  EXPECT_TRUE(has(run("inspect --tensors " + checkpoint), "F32    [5, 9]  model.embed_tokens.weight"));
  flip_bit(checkpoint + "/model.safetensors", 550);
  const Outcome damaged = run("inspect " + checkpoint);
  EXPECT_EQ(damaged.code, 65);
  EXPECT_TRUE(has(damaged, "model.safetensors: hash does not match manifest.json (chunk 1 of 1)")) << damaged.text;
  fs::remove(checkpoint + "/manifest.json");
  EXPECT_EQ(run("inspect " + checkpoint).code, 65);
}

TEST_F(InspectVerify, InspectsHuggingFaceDirectoriesAndFiles) {
  const fs::path golden = fs::path(DZ_GOLDEN) / "safetensors";
  const Json json = Json::parse(run("inspect --json " + (golden / "sharded").string()).text);
  EXPECT_EQ(json["parameters"], 37344);
  EXPECT_EQ(json["tensors"][0]["dtype"].get<std::string>(), "BF16");
  EXPECT_TRUE(has(run("inspect " + (golden / "unsharded.safetensors").string()), "37344 parameters"));
  EXPECT_EQ(run("inspect " + (golden / "bad/hole.safetensors").string()).code, 65);
}

TEST_F(InspectVerify, InspectWithoutAnything) {
  EXPECT_EQ(run("inspect " + path("missing")).code, 66);
  fs::create_directories(scratch_ / "new/checkpoints");
  EXPECT_EQ(run("inspect " + path("new")).code, 66);
  EXPECT_EQ(run("inspect").code, 64);
}

TEST_F(InspectVerify, VerifyExitCodes) {
  const Outcome same = run("verify " + path("a") + " " + path("b"));
  EXPECT_EQ(same.code, 0) << same.text;
  EXPECT_TRUE(has(same, "DELTA 0"));

  ThreadPool pool(1);
  SmallState state(4);
  state.values(3)[2] += 1.0f;
  checkpoint::save(scratch_ / "b/checkpoints", state.snapshot(), 0, pool);
  const Outcome different = run("verify " + path("a") + " " + path("b"));
  EXPECT_EQ(different.code, 1);
  EXPECT_TRUE(has(different, "model.norm.weight, element 2")) << different.text;
  EXPECT_EQ(Json::parse(run("verify --json " + path("a") + " " + path("b")).text)["verdict"].get<std::string>(), "different");

  EXPECT_EQ(run("verify " + path("a/checkpoints/step-2") + " " + path("b/checkpoints/step-4")).code, 2);
  EXPECT_EQ(run("verify " + path("a") + " " + path("missing")).code, 66);
  flip_bit(path("b/checkpoints/step-2/model.safetensors"), 550);
  EXPECT_EQ(run("verify " + path("a") + " " + path("b")).code, 65);
}

}  // namespace
}  // namespace dz
