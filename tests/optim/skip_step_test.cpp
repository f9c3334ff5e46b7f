#include "optim/skip_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "base/error.h"
#include "optim/golden.h"

namespace dz::optim {
namespace {

using test::Json;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

struct Sequence {
  SkipStepSettings settings;
  std::vector<float> losses, norms;
};

Sequence sequence_of(const Json& golden) {
  Sequence sequence;
  sequence.settings.window = golden["rolling_interval_length"];
  sequence.settings.sigma = golden["sigma_factor"];
  sequence.settings.use_grad_norm = golden["inputs"][0].size() == 2;
  for (const Json& entry : golden["inputs"]) {
    sequence.losses.push_back(test::hex_float(entry[0]));
    sequence.norms.push_back(sequence.settings.use_grad_norm ? test::hex_float(entry[1]) : 1.0f);
  }
  return sequence;
}

std::vector<bool> skips_of(const Sequence& sequence) {
  SkipStep guard(sequence.settings);
  std::vector<bool> skips;
  for (size_t i = 0; i < sequence.losses.size(); ++i) skips.push_back(guard.judge(sequence.losses[i], sequence.norms[i]).skip);
  return skips;
}

TEST(SkipStep, VerdictsEqualTheGoldens) {
  int files = 0, finite_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(test::golden_path("skip"))) {
    const std::string name = entry.path().filename();
    if (name == "index.json") continue;
    const Json golden = test::golden_json("skip/" + name);
    const bool finite = golden["all_finite"];
    const std::vector<bool> skips = skips_of(sequence_of(golden));
    const Json& expected = finite ? golden["reference_behaviour"] : golden["ours"];
    ASSERT_EQ(expected.size(), skips.size());
    for (size_t i = 0; i < skips.size(); ++i) EXPECT_EQ(skips[i], expected[i] == 0) << name << " entry " << i + 1;
    ++files;
    finite_files += finite;
  }
  EXPECT_EQ(files, 34);
  EXPECT_GE(finite_files, 20);
}

// The reference is poisoned for the whole window by one NaN; ours must not be (that the two differ shows that the test can tell).
TEST(SkipStep, OneNanCostsOneStep) {
  const Json golden = test::golden_json("skip/nan_loss_100.json");
  const std::vector<bool> skips = skips_of(sequence_of(golden));
  EXPECT_EQ(std::count(skips.begin(), skips.end(), true), 1);
  EXPECT_EQ(golden["skipped_by_reference"].size(), 129u);
}

// Row 69: the threshold is mean + sigma * deviation. Mean 3 and deviation 0.05: 3.1 is applied, 3.4 is not.
TEST(SkipStep, ThresholdIsAboveTheMean) {
  for (const auto& [loss, skip] : {std::pair{3.1f, false}, {3.4f, true}, {-10.0f, false}}) {
    SkipStep guard({.window = 128, .sigma = 6});
    for (int i = 0; i < 128; ++i) guard.judge(i % 2 ? 3.05f : 2.95f, 1.0f + static_cast<float>(i % 2));
    EXPECT_EQ(guard.judge(loss, 1.0f).skip, skip) << loss;
  }
}

// Row 70: after a constant loss any rise is skipped, as in the reference; the counters show it.
TEST(SkipStep, ConstantWindowAndCounters) {
  SkipStep guard({.window = 128, .sigma = 6});
  for (int i = 0; i < 150; ++i) EXPECT_FALSE(guard.judge(2.0f, 1.0f).skip);
  const SkipVerdict verdict = guard.judge(std::nextafter(2.0f, 3.0f), 1.0f);
  EXPECT_TRUE(verdict.skip);
  EXPECT_EQ(verdict.reason, "loss 2 is above the last 128, which do not vary");
  EXPECT_EQ(guard.consecutive_skips(), 1);
  guard.judge(kNan, 1.0f);
  EXPECT_EQ(guard.consecutive_skips(), 2);
  guard.judge(2.0f, 1.0f);
  EXPECT_EQ(guard.consecutive_skips(), 0);
  EXPECT_EQ(guard.total_skips(), 2);
}

TEST(SkipStep, ReasonsSayWhat) {
  SkipStep guard({.window = 128, .sigma = 6});
  EXPECT_EQ(guard.judge(kNan, kInf).reason, "loss is nan, gradient norm is inf");
  EXPECT_EQ(guard.judge(-kInf, 1.0f).reason, "loss is -inf");
  for (int i = 0; i < 128; ++i) guard.judge(i % 2 ? 3.05f : 2.95f, i % 2 ? 1.1f : 0.9f);
  EXPECT_EQ(guard.judge(3.5f, 1.0f).reason, "loss is 10.0 sigma above the last 128");
  EXPECT_EQ(guard.judge(3.0f, 2.0f).reason, "gradient norm is 10.0 sigma above the last 128");
}

TEST(SkipStep, DisabledStillSkipsWhatIsNotFinite) {
  SkipStep guard({.enabled = false});
  for (int i = 0; i < 200; ++i) EXPECT_FALSE(guard.judge(i == 150 ? 1e6f : 1.0f, 1.0f).skip);
  EXPECT_TRUE(guard.judge(kNan, 1.0f).skip);
  EXPECT_TRUE(guard.judge(1.0f, kInf).skip);
}

// A resume at any step goes on as if nothing had happened; a window that lost its history would not (the control).
TEST(SkipStep, StateSurvivesBitForBit) {
  const Sequence sequence = sequence_of(test::golden_json("skip/repeated_spikes.json"));
  const std::vector<bool> unbroken = skips_of(sequence);
  EXPECT_GT(std::count(unbroken.begin(), unbroken.end(), true), 1);
  bool forgetting_differs = false;
  for (const size_t cut : {0u, 1u, 63u, 64u, 100u, 129u, 200u}) {
    SkipStep first(sequence.settings), second(sequence.settings), forgetful(sequence.settings);
    for (size_t i = 0; i < cut; ++i) first.judge(sequence.losses[i], sequence.norms[i]);
    second.restore(first.to_json(), "trainer.json");
    EXPECT_EQ(second.to_json(), first.to_json());
    for (size_t i = cut; i < unbroken.size(); ++i) {
      EXPECT_EQ(second.judge(sequence.losses[i], sequence.norms[i]).skip, unbroken[i]) << "cut " << cut << " entry " << i;
      forgetting_differs |= forgetful.judge(sequence.losses[i], sequence.norms[i]).skip != unbroken[i];
    }
  }
  EXPECT_TRUE(forgetting_differs);
}

TEST(SkipStep, DamagedStateIsRefused) {
  SkipStep guard({.window = 4});
  guard.judge(1.5f, 2.0f);
  const std::string good = guard.to_json();
  EXPECT_NO_THROW(SkipStep({.window = 4}).restore(good, "t"));
  for (const std::string bad : {"", "[]", "{}", R"({"losses":["0x1p+0"],"grad_norms":[],"consecutive_skips":0,"total_skips":0})",
                                R"({"losses":["nan"],"grad_norms":["0x1p+0"],"consecutive_skips":0,"total_skips":0})",
                                R"({"losses":[1.5],"grad_norms":["0x1p+0"],"consecutive_skips":0,"total_skips":0})",
                                R"({"losses":["0x1p+0 "],"grad_norms":["0x1p+0"],"consecutive_skips":0,"total_skips":0})",
                                R"({"losses":[],"grad_norms":[],"consecutive_skips":-1,"total_skips":0})"}) {
    EXPECT_THROW(SkipStep({.window = 4}).restore(bad, "t"), CheckpointError) << bad;
  }
  EXPECT_THROW(check(SkipStepSettings{.window = 1}, "r"), ConfigError);
  EXPECT_THROW(check(SkipStepSettings{.sigma = -1}, "r"), ConfigError);
}

// A step without a target is skipped and counted, and the window does not learn from it.
TEST(SkipStep, AStepThatIsPassedOverLeavesTheWindow) {
  SkipStep guard({.window = 8}), other({.window = 8});
  for (int i = 0; i < 6; ++i) {
    guard.judge(3.0f + 0.01f * static_cast<float>(i), 1.0f);
    other.judge(3.0f + 0.01f * static_cast<float>(i), 1.0f);
  }
  EXPECT_TRUE(guard.pass_over("nothing").skip);
  EXPECT_TRUE(guard.pass_over("nothing").skip);
  EXPECT_EQ(guard.consecutive_skips(), 2);
  EXPECT_EQ(guard.judge(3.02f, 1.0f).skip, other.judge(3.02f, 1.0f).skip);
  EXPECT_EQ(guard.consecutive_skips(), 0);
  EXPECT_EQ(guard.total_skips(), 2);
}

}  // namespace
}  // namespace dz::optim
