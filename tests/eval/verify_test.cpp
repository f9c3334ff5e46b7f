#include "eval/verify.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkpoint/small_state.h"

namespace dz::eval {
namespace {

using checkpoint::SmallState;
using Json = nlohmann::json;

// Two runs of 20 steps with checkpoints at 10 and 20 and the digest of step 10 also in the metrics line; alike until a test changes one.
class Verify : public testing::Test {
 protected:
  Verify() {
    for (const char* name : {"a", "b"}) {
      const fs::path run = scratch_ / name;
      fs::create_directories(run / "checkpoints");
      for (const int64_t step : {10, 20}) save(run, SmallState(step));
      write_metrics(run, lines(20));
      write_bytes(run / "recipe.yaml", "recipe:\n  seed: 1\n  data:\n    path: shards\n");
      write_bytes(run / "topology.yaml", "topology:\n  threads: 2\n");
      write_bytes(run / "environment.json", R"({"isa": "avx2", "recipe": "9f3c"})");
    }
  }

  checkpoint::Saved save(const fs::path& run, const SmallState& state) { return checkpoint::save(run / "checkpoints", state.snapshot(), 0, pool_); }

  std::vector<Json> lines(int64_t steps) {
    std::vector<Json> all;
    for (int64_t step = 1; step <= steps; ++step) {
      all.push_back({{"step", step},
                     {"loss", 2.5},
                     {"loss_hex", "0x1.4p+1"},
                     {"grad_norm_hex", "0x1p-1"},
                     {"lr", 0.001},
                     {"skipped", false},
                     {"batch_digest", "b" + std::to_string(step)},
                     {"seconds", 0.1}});
      if (step == 10) {
        const auto found = checkpoint::open_checkpoint(a_ / "checkpoints/step-10");
        all.back()["digest"] = {{"parameters", found.parameters.hex()}, {"moments", found.moments.hex()}, {"trainer", found.trainer.hex()}};
      }
    }
    return all;
  }
  static void write_metrics(const fs::path& run, const std::vector<Json>& all) {
    std::string text;
    for (const Json& line : all) text += line.dump() + "\n";
    write_bytes(run / "metrics.jsonl", text);
  }
  // Changes one field of one line of run b.
  void change(int64_t step, const char* key, const Json& value) {
    std::vector<Json> all = lines(20);
    all[static_cast<size_t>(step - 1)][key] = value;
    write_metrics(b_, all);
  }
  static bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

  Scratch scratch_{memory_directory()};
  fs::path a_ = scratch_ / "a", b_ = scratch_ / "b";
  ThreadPool pool_{1};
};

TEST_F(Verify, EqualRunsAreDeltaZero) {
  const Verification result = verify(a_, b_);
  EXPECT_TRUE(result.same());
  EXPECT_EQ(result.steps.size(), 20u);
  EXPECT_EQ(result.digest_steps, (std::vector<int64_t>{10, 20}));
  EXPECT_EQ(result.checkpoints, (std::vector<int64_t>{10, 20}));
  const std::string text = to_text(result);
  EXPECT_TRUE(has(text, "20 common steps (1-20); state digests at 10, 20; checkpoints at 10, 20")) << text;
  EXPECT_TRUE(has(text, result.digest->parameters)) << text;
  EXPECT_TRUE(text.ends_with("DELTA 0\n")) << text;
  const Json json = Json::parse(to_json(result));
  EXPECT_EQ(json["verdict"].get<std::string>(), "same");
  EXPECT_EQ(json["digest"]["parameters"].get<std::string>(), checkpoint::open_checkpoint(a_ / "checkpoints/step-20").parameters.hex());
}

TEST_F(Verify, EachFieldOfALineCounts) {
  struct Field {
    const char* key;
    Json value;
    const char* words;
  };
  for (const Field& field : {Field{"loss_hex", "0x1.400002p+1", "loss 0x1.4p+1 against 0x1.400002p+1, batch ids equal"},
                             {"grad_norm_hex", "nan", "norm 0x1p-1 against nan"},
                             {"lr", 0.002, "learning rate 0.001 against 0.002"},
                             {"skipped", true, "skipped no against yes"},
                             {"batch_digest", "other", "batch ids b17 against other"}}) {
    change(17, field.key, field.value);
    const Verification result = verify(a_, b_);
    EXPECT_FALSE(result.same()) << field.key;
    ASSERT_TRUE(result.first) << field.key;
    EXPECT_EQ(result.first->step, 17);
    EXPECT_EQ(result.last_equal_digest, 10);
    const std::string text = to_text(result);
    EXPECT_TRUE(has(text, std::string("DIFFERENT from step 17: ") + field.words)) << text;
    EXPECT_FALSE(has(text, "DELTA 0")) << text;
  }
  change(17, "seconds", 9.0);
  EXPECT_TRUE(verify(a_, b_).same()) << "time is not part of a result";
}

TEST_F(Verify, OneUlpInOneWeightIsFoundByNameAndElement) {
  SmallState state(20);
  float& value = state.values(0)[41];
  const float before = value;
  value = std::nextafter(value, 1e9f);
  save(b_, state);
  const Verification result = verify(a_, b_);
  ASSERT_TRUE(result.first && result.tensor);
  EXPECT_EQ(result.first->step, 20);
  EXPECT_EQ(result.tensor->name, "model.embed_tokens.weight");
  EXPECT_EQ(result.tensor->element, 41);
  EXPECT_EQ(result.tensor->a, before);
  EXPECT_EQ(result.tensor->b, value);
  EXPECT_TRUE(has(to_text(result), "first tensor: model.embed_tokens.weight, element 41: 0x1.")) << to_text(result);
  EXPECT_EQ(Json::parse(to_json(result))["first_tensor"]["element"], 41);
}

TEST_F(Verify, SwappedTensorsAreFound) {
  SmallState state(20);
  std::swap(state.values(1), state.values(2));
  save(b_, state);
  const Verification result = verify(a_, b_);
  ASSERT_TRUE(result.tensor);
  EXPECT_EQ(result.tensor->name, "model.layers.10.w");
  EXPECT_EQ(result.tensor->element, 0);
}

TEST_F(Verify, AMomentOrTheTrainerStateAloneCounts) {
  SmallState state(20);
  state.moment_slots()[3].data[6] += 1.0f;
  save(b_, state);
  Verification result = verify(a_, b_);
  ASSERT_TRUE(result.tensor);
  EXPECT_EQ(result.tensor->name, "exp_avg_sq.model.layers.10.w");
  EXPECT_EQ(result.tensor->element, 6);

  const SmallState equal(20);
  checkpoint::Snapshot snapshot = equal.snapshot();
  snapshot.trainer_json = "{\"adam_step\":19}";
  checkpoint::save(b_ / "checkpoints", snapshot, 0, pool_);
  result = verify(a_, b_);
  ASSERT_TRUE(result.first);
  EXPECT_TRUE(has(result.first->what, "digest of the trainer state")) << result.first->what;
  EXPECT_FALSE(result.tensor);
}

TEST_F(Verify, AnotherShapeIsSaidSo) {
  save(b_, SmallState(20, 6));
  EXPECT_TRUE(has(to_text(verify(a_, b_)), "model.embed_tokens.weight, shape [5, 9] against [6, 9]"));
}

TEST_F(Verify, ACheckpointAgainstAMetricsDigest) {
  fs::remove_all(b_ / "checkpoints");
  const Verification result = verify(a_, b_);
  EXPECT_TRUE(result.same());
  EXPECT_EQ(result.digest_steps, std::vector<int64_t>{10});
  EXPECT_TRUE(result.checkpoints.empty());
  save(a_, SmallState(10, 6));
  EXPECT_FALSE(verify(a_, b_).same());
}

TEST_F(Verify, ARunThatContradictsItselfIsDifferent) {
  for (const fs::path& run : {a_, b_}) save(run, SmallState(10, 6));  // alike, but not what their metrics lines say
  const Verification result = verify(a_, b_);
  ASSERT_TRUE(result.first);
  EXPECT_TRUE(has(result.first->what, "contradicts itself")) << result.first->what;
}

TEST_F(Verify, DamagedAndUnfinishedCheckpoints) {
  flip_bit(b_ / "checkpoints/step-20/moments.safetensors", 900);
  EXPECT_TRUE(
      has(message_of<CheckpointError>([&] { verify(a_, b_); }), "step-20/moments.safetensors: hash does not match manifest.json (chunk 1 of 1)"));
  fs::remove(b_ / "checkpoints/step-20/manifest.json");
  const Verification result = verify(a_, b_);
  EXPECT_TRUE(result.same());
  EXPECT_EQ(result.checkpoints, std::vector<int64_t>{10});
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_TRUE(has(result.notes[0], "no manifest"));
}

TEST_F(Verify, TornAndDoubledLines) {
  std::string text = read_file(b_ / "metrics.jsonl");
  write_bytes(b_ / "metrics.jsonl", R"({"step": 3, "loss_hex": "0x1p+9"})"
                                    "\nnot json\n" +
                                        text + R"({"step": 21, "lo)");
  const Verification result = verify(a_, b_);
  EXPECT_TRUE(result.same()) << "the later line of step 3 counts";
  EXPECT_EQ(result.steps.size(), 20u);
  ASSERT_EQ(result.notes.size(), 2u);
  EXPECT_TRUE(has(result.notes[0], "metrics.jsonl:2: not readable"));
  EXPECT_TRUE(has(result.notes[1], "torn"));
}

TEST_F(Verify, DifferencesOfRecipeAndTopologyAreNamed) {
  write_bytes(b_ / "topology.yaml", "topology:\n  threads: 1\n  micro_batch: 4\n");
  write_bytes(b_ / "environment.json", R"({"isa": "avx512", "recipe": "9f3c"})");
  Verification result = verify(a_, b_);
  EXPECT_TRUE(result.same());
  EXPECT_EQ(result.settings, (std::vector<std::string>{"topology.micro_batch:  / 4", "topology.threads: 2 / 1", "isa: avx2 / avx512"}));
  change(17, "loss_hex", "0x1p+2");
  EXPECT_TRUE(has(to_text(verify(a_, b_)), "none of this should move bits"));

  write_bytes(b_ / "recipe.yaml", "recipe:\n  seed: 2\n  data:\n    path: shards\n");
  write_bytes(b_ / "environment.json", R"({"isa": "avx2", "recipe": "1111"})");
  result = verify(a_, b_);
  EXPECT_FALSE(result.same_recipe);
  EXPECT_TRUE(has(to_text(result), "recipe.seed: 1 / 2")) << to_text(result);
  EXPECT_TRUE(has(to_text(result), "the recipes differ")) << to_text(result);
  EXPECT_FALSE(result.same()) << "other recipes do not excuse other bits";
}

TEST_F(Verify, PathsInTheRecipeAreNoDifference) {
  write_bytes(b_ / "recipe.yaml", "recipe:\n  seed: 1\n  data:\n    path: elsewhere\n");
  const Verification result = verify(a_, b_);
  EXPECT_TRUE(result.same_recipe);
  EXPECT_TRUE(result.settings.empty());
}

TEST_F(Verify, NothingInCommon) {
  std::vector<Json> later = lines(20);
  for (Json& line : later) line["step"] = line["step"].get<int64_t>() + 100;
  write_metrics(b_, later);
  fs::remove_all(b_ / "checkpoints");
  const Verification result = verify(a_, b_);
  EXPECT_TRUE(result.nothing_in_common());
  EXPECT_FALSE(result.same());
  EXPECT_EQ(Json::parse(to_json(result))["verdict"].get<std::string>(), "nothing in common");
}

TEST_F(Verify, OnlyMetricsInCommonSaysSo) {
  fs::remove_all(b_ / "checkpoints");
  std::vector<Json> all = lines(9);
  write_metrics(b_, all);
  const std::string text = to_text(verify(a_, b_));
  EXPECT_TRUE(has(text, "9 common steps (1-9); no state digest in common")) << text;
  EXPECT_TRUE(has(text, "DELTA 0   (of what the metrics lines hold)")) << text;
}

TEST_F(Verify, SingleCheckpoints) {
  EXPECT_TRUE(verify(a_ / "checkpoints/step-20", b_).same());
  EXPECT_TRUE(verify(a_ / "checkpoints/step-20", b_ / "checkpoints/step-20").same());
  EXPECT_TRUE(verify(a_ / "checkpoints/step-10", b_ / "checkpoints/step-20").nothing_in_common());
}

TEST_F(Verify, WhatIsNoRunIsAnInputError) {
  EXPECT_THROW(verify(a_, scratch_ / "missing"), InputError);
  fs::create_directory(scratch_ / "empty");
  EXPECT_THROW(verify(scratch_ / "empty", a_), InputError);
}

}  // namespace
}  // namespace dz::eval
