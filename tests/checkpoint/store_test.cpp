#include "checkpoint/store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "checkpoint/manifest.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/small_state.h"

namespace dz::checkpoint {
namespace {

const std::vector<std::string> kFiles = {"digests.json", "manifest.json", "model.safetensors", "moments.safetensors", "recipe.yaml", "trainer.json"};

class Store : public testing::Test {
 protected:
  Saved save_step(int64_t step, int64_t keep = 0) { return save(directory_, SmallState(step).snapshot(), keep, pool_); }
  Newest newest() const { return find_newest(directory_); }
  int64_t newest_step() const {
    const Newest found = newest();
    return found.checkpoint ? found.checkpoint->step : -1;
  }
  // Why step-N was passed over; fails the test when it was not.
  std::string why_skipped(int64_t step) const {
    for (const Skipped& skipped : newest().skipped)
      if (skipped.name == "step-" + std::to_string(step)) return skipped.why;
    ADD_FAILURE() << "step " << step << " was not skipped";
    return "";
  }
  fs::path file(int64_t step, const std::string& name) const { return directory_ / ("step-" + std::to_string(step)) / name; }

  Scratch scratch_{memory_directory()};
  fs::path directory_ = scratch_ / "checkpoints";
  ThreadPool pool_{2};
};

TEST_F(Store, RoundTrip) {
  const Saved saved = save_step(7);
  EXPECT_EQ(names_in(saved.path), kFiles);
  SmallState loaded(0);
  const Newest found = newest();
  ASSERT_TRUE(found.checkpoint);
  EXPECT_TRUE(found.skipped.empty());
  loaded.load_from(*found.checkpoint);
  EXPECT_TRUE(loaded == SmallState(7));
  EXPECT_EQ(read_side_file(*found.checkpoint, "recipe.yaml"), "seed: 1\n");
  EXPECT_EQ(read_digests(*found.checkpoint), saved.digests);
  EXPECT_EQ(found.checkpoint->parameters, saved.digests.parameters.total);
  int64_t bytes = 0;
  for (const std::string& name : names_in(saved.path)) bytes += static_cast<int64_t>(fs::file_size(saved.path / name));
  EXPECT_EQ(saved.bytes, bytes);
}

TEST_F(Store, NothingSavedYet) {
  EXPECT_FALSE(newest().checkpoint);
  fs::create_directory(directory_);
  EXPECT_EQ(newest().count, 0);
  EXPECT_TRUE(clean_leftovers(directory_).empty());
}

TEST_F(Store, SavingWhatWasJustLoadedGivesEqualFiles) {
  const fs::path first = save_step(6).path;
  std::vector<std::string> before;
  for (const std::string& name : kFiles) before.push_back(read_file(first / name));
  SmallState loaded(0);
  loaded.load_from(*newest().checkpoint);
  save(directory_, loaded.snapshot(), 0, pool_);  // replaces step-6
  for (size_t i = 0; i < kFiles.size(); ++i) EXPECT_EQ(read_file(first / kFiles[i]), before[i]) << kFiles[i];
  EXPECT_EQ(names_in(directory_), std::vector<std::string>{"step-6"});
}

TEST_F(Store, EachSaveHoldsItsOwnState) {
  for (const int64_t step : {2, 4, 6}) save_step(step);
  for (const int64_t step : {2, 4, 6}) {
    SmallState loaded(0);
    loaded.load_from(open_checkpoint(directory_ / step_name(step)));
    EXPECT_TRUE(loaded == SmallState(step)) << step;
    EXPECT_FALSE(loaded == SmallState(step + 1)) << step;
  }
}

TEST_F(Store, ViewsIntoOneBufferAreWrittenAsViews) {
  const std::vector<float> buffer(100000, 1.5f);
  Snapshot snapshot{.step = 1, .parameters = {}, .moments = {}, .trainer_json = "{}", .side_files = {}, .digests = {}};
  for (int i = 0; i < 3; ++i) snapshot.parameters.push_back({"slice" + std::to_string(i), DType::kF32, {10}, buffer.data() + i * 1000});
  save(directory_, snapshot, 0, pool_);
  EXPECT_LT(fs::file_size(file(1, "model.safetensors")), 3u * 40u + 400u);
}

TEST_F(Store, TensorsAreMatchedByNameNotByPosition) {
  const Saved saved = save_step(3);
  SmallState loaded(0);
  std::vector<TensorSlot> parameters = loaded.parameter_slots(), moments = loaded.moment_slots();
  std::reverse(parameters.begin(), parameters.end());
  std::swap(moments[0], moments[5]);
  load(open_checkpoint(saved.path), parameters, moments);
  SmallState expected(3);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(loaded.values(i), expected.values(i));
}

TEST_F(Store, ACheckpointOfAnotherModelIsRefusedAndTouchesNothing) {
  const Checkpoint saved = open_checkpoint(save_step(3).path);
  const auto message = [&](const auto& change) {
    SmallState loaded(9);
    std::vector<TensorSlot> parameters = loaded.parameter_slots(), moments = loaded.moment_slots();
    change(parameters, moments);
    const std::string text = message_of<ConfigError>([&] { load(saved, parameters, moments); });
    EXPECT_TRUE(loaded == SmallState(9)) << text;
    return text;
  };
  using Slots = std::vector<TensorSlot>;
  EXPECT_NE(message([](Slots& p, Slots&) { p[0].shape = {9, 5}; }).find("shape [5, 9], expected [9, 5]"), std::string::npos);
  EXPECT_NE(message([](Slots& p, Slots&) { p[1].name = "model.layers.11.w"; }).find("model.layers.10.w"), std::string::npos);
  EXPECT_NE(message([](Slots& p, Slots&) { p.pop_back(); }).find("model.norm.weight"), std::string::npos);
  EXPECT_NE(message([](Slots& p, Slots&) { p.push_back({"lm_head.weight", {1}, p[0].data}); }).find("lm_head.weight"), std::string::npos);
  EXPECT_NE(message([](Slots&, Slots& m) { m.pop_back(); }).find("exp_avg_sq.model.norm.weight"), std::string::npos);
}

TEST_F(Store, AFlippedBitInEachFileIsFoundAndNamed) {
  save_step(2);
  for (const std::string& name : kFiles) {
    save_step(4);
    const size_t size = fs::file_size(file(4, name));
    for (const size_t byte : {size_t{0}, size / 3, size / 2, size - 1}) {
      flip_bit(file(4, name), byte);
      EXPECT_NE(why_skipped(4).find(name), std::string::npos) << name << " byte " << byte << ": " << why_skipped(4);
      EXPECT_EQ(newest_step(), 2);
      flip_bit(file(4, name), byte);
      EXPECT_EQ(newest_step(), 4) << "the same file whole again";
    }
  }
}

TEST_F(Store, NoByteOfTheManifestCanChange) {
  const Saved saved = save_step(4);
  const std::string text = read_file(saved.path / "manifest.json");
  EXPECT_EQ(parse_manifest(saved.path, text).step, 4);
  for (size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    EXPECT_THROW(parse_manifest(saved.path, damaged), CheckpointError) << i;
    EXPECT_THROW(parse_manifest(saved.path, text.substr(0, i)), CheckpointError) << i;
  }
  EXPECT_THROW(parse_manifest(saved.path, text + " "), CheckpointError);
}

TEST_F(Store, ADamagedFileNamesTheChunk) {
  const SmallState large(5, 300000);  // 10.8 MB: three chunks
  const Checkpoint saved = open_checkpoint(save(directory_, large.snapshot(), 0, pool_).path);
  EXPECT_NO_THROW(verify_files(saved));
  SmallState loaded(0, 300000);
  loaded.load_from(saved);
  EXPECT_TRUE(loaded == large);
  flip_bit(file(5, "model.safetensors"), 5'000'000);
  EXPECT_NE(why_skipped(5).find("model.safetensors: hash does not match manifest.json (chunk 2 of 3)"), std::string::npos) << why_skipped(5);
  EXPECT_THROW(loaded.load_from(saved), CheckpointError);
}

TEST_F(Store, DamageInAHeaderIsDamageNotAnotherModel) {
  const Checkpoint saved = open_checkpoint(save_step(5).path);
  const fs::path model = file(5, "model.safetensors");
  std::string bytes = read_file(model);
  bytes.replace(bytes.find("layers.10"), 9, "layers.11");
  write_bytes(model, bytes);
  SmallState loaded(0);
  EXPECT_NE(message_of<CheckpointError>([&] { loaded.load_from(saved); }).find("chunk 1 of 1"), std::string::npos);
}

TEST_F(Store, IncompleteOnesAreSkippedWithTheReason) {
  save_step(2);
  const auto skipped_after = [&](const auto& damage) {
    save_step(4);
    damage();
    EXPECT_EQ(newest_step(), 2);
    const std::string why = why_skipped(4);
    fs::remove_all(directory_ / "step-4");
    return why;
  };
  EXPECT_NE(skipped_after([&] { fs::remove(file(4, "manifest.json")); }).find("manifest missing"), std::string::npos);
  for (const char* name : {"model.safetensors", "moments.safetensors", "trainer.json", "recipe.yaml", "digests.json"}) {
    const std::string why = skipped_after([&] { fs::remove(file(4, name)); });
    EXPECT_NE(why.find(std::string(name) + ": missing"), std::string::npos) << why;
  }
  EXPECT_NE(skipped_after([&] { fs::resize_file(file(4, "moments.safetensors"), 100); }).find("100 bytes, expected"), std::string::npos);
  EXPECT_NE(skipped_after([&] { write_bytes(file(4, "manifest.json"), "{\"step\": 4"); }).find("not readable"), std::string::npos);
  EXPECT_NE(skipped_after([&] { write_bytes(file(4, "manifest.json"), ""); }).find("manifest.json"), std::string::npos);
  EXPECT_NE(skipped_after([&] {
              fs::remove_all(directory_ / "step-4");
              fs::create_directory(directory_ / "step-4");
            }).find("manifest missing"),
            std::string::npos);
  EXPECT_NE(skipped_after([&] {
              fs::remove_all(directory_ / "step-4");
              fs::copy(directory_ / "step-2", directory_ / "step-4");
            }).find("step 2, expected 4"),
            std::string::npos);
}

TEST_F(Store, NamesThatAreNotStepsAreNoCheckpoints) {
  save_step(2);
  for (const char* name : {"step-", "step--1", "step-03", "step-9x", "step-99999999999999999999", "other", ".step-9.tmp-1"})
    fs::create_directory(directory_ / name);
  const Newest found = newest();
  EXPECT_EQ(found.checkpoint->step, 2);
  EXPECT_EQ(found.count, 1);
  EXPECT_TRUE(found.skipped.empty());
}

TEST_F(Store, ACopyUnderAnotherNameIsACheckpoint) {
  fs::copy(save_step(3).path, scratch_ / "my-model");
  EXPECT_EQ(open_checkpoint(scratch_ / "my-model").step, 3);
}

TEST_F(Store, ForeignNamesInAManifestCannotLeaveTheDirectory) {
  Checkpoint saved = open_checkpoint(save_step(3).path);
  saved.files[0].name = "../outside";
  EXPECT_THROW(parse_manifest(saved.path, manifest_text(saved)), CheckpointError);
  saved.files[0].name = "outside";
  EXPECT_NO_THROW(parse_manifest(saved.path, manifest_text(saved)));
}

TEST_F(Store, NanAndInfinityAreNeverSaved) {
  save_step(2);
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    SmallState state(4);
    state.values(1)[5] = bad;
    const std::string message = message_of<DivergedError>([&] { save(directory_, state.snapshot(), 1, pool_); });
    EXPECT_NE(message.find("model.layers.10.w, element 5"), std::string::npos) << message;
    EXPECT_EQ(names_in(directory_), std::vector<std::string>{"step-2"});
  }
}

TEST_F(Store, RetentionKeepsTheNewestAndNeverTheBrokenInTheirPlace) {
  for (const int64_t step : {2, 4, 6, 8}) save_step(step);
  fs::remove(file(6, "trainer.json"));
  EXPECT_EQ(save_step(10, 2).removed, (std::vector<int64_t>{4, 2}));
  EXPECT_EQ(names_in(directory_), (std::vector<std::string>{"step-10", "step-6", "step-8"})) << "6 is broken: it counts for nothing";
  EXPECT_EQ(save_step(12, 1).removed, (std::vector<int64_t>{10, 8}));
  EXPECT_EQ(newest_step(), 12);
}

TEST_F(Store, ANewerDamagedCheckpointDoesNotPushOutTheGoodOnes) {
  for (const int64_t step : {2, 4, 9}) save_step(step);
  flip_bit(file(9, "model.safetensors"), 500);  // its size is right: only its contents are not
  EXPECT_EQ(save_step(6, 1).removed, (std::vector<int64_t>{4, 2}));
  EXPECT_EQ(newest_step(), 6);
  save_step(9, 1);  // the run gets there again and replaces it
  EXPECT_EQ(newest_step(), 9);
  EXPECT_EQ(names_in(directory_), std::vector<std::string>{"step-9"});
}

TEST_F(Store, AFileInTheWayIsACreateError) {
  write_bytes(directory_, "not a directory");
  EXPECT_NE(message_of<CreateError>([&] { save_step(1); }).find(directory_.string()), std::string::npos);
}

TEST_F(Store, ModelFileOpensAsAnOrdinarySafetensorsFile) {
  const TensorSource source = TensorSource::open(save_step(3).path);
  EXPECT_EQ(source.metadata(), kTorchFormat);
  EXPECT_EQ(source.at("model.embed_tokens.weight").shape, (Shape{5, 9}));
}

}  // namespace
}  // namespace dz::checkpoint
