// A run whose every gradient is broken ends with exit 79 and leaves its last good checkpoint whole.
#include "checkpoint/store.h"
#include "cli/run.h"
#include "train/trajectory.h"

namespace dz::train::test {
namespace {

dz::test::Outcome train_with_fault(const TempDir& temp, const std::string& sets, const std::string& fault) {
  return dz::test::deltazero(fmt::format("train '{}' --dir '{}' {}", write_trajectory_config(temp).string(), (temp / "run").string(), sets),
                             "DZ_FAULT='" + fault + "'");
}

TEST(Divergence, StopsAfterTheSkipsThatTheRecipeAllows) {
  TempDir temp;
  const std::string sets = "--set recipe.optimizer.skip_step.max_consecutive=3 --set run.checkpoint_every=4";
  const dz::test::Outcome outcome = train_with_fault(temp, sets, "grad:model.norm.weight[0]=inf@6-20");
  EXPECT_EQ(outcome.code, 79) << outcome.text;
  EXPECT_NE(outcome.text.find("training diverged: 3 steps in a row were skipped, the last is 8"), std::string::npos) << outcome.text;
  const std::vector<Json> lines = metrics(temp / "run");
  ASSERT_EQ(lines.size(), 8u);
  EXPECT_FALSE(lines[4].at("skipped").get<bool>());
  for (size_t i = 5; i < 8; ++i) {
    EXPECT_TRUE(lines[i].at("skipped").get<bool>());
    EXPECT_EQ(lines[i].at("skip_reason"), "gradient norm is inf");
    EXPECT_EQ(lines[i].at("adam_step"), 5);
    EXPECT_TRUE(lines[i].at("grad_norm").is_null());
    EXPECT_EQ(lines[i].at("grad_norm_hex"), "inf");
  }
  const checkpoint::Newest newest = checkpoint::find_newest(temp / "run" / "checkpoints");
  ASSERT_TRUE(newest.checkpoint.has_value());
  EXPECT_TRUE(newest.skipped.empty());
  checkpoint::verify_files(*newest.checkpoint);

  // The control: one skip fewer than the limit, and the run goes on from there without the fault.
  TempDir other;
  EXPECT_EQ(train_with_fault(other, sets + " --stop-after 10", "grad:model.norm.weight[0]=inf@6-7").code, 0);
}

TEST(Divergence, AFaultThatIsNoneIsRefusedBeforeAnythingIsMade) {
  TempDir temp;
  const dz::test::Outcome outcome = train_with_fault(temp, "", "grad:model.norm.weights=nan@2");
  EXPECT_EQ(outcome.code, 64) << outcome.text;
  EXPECT_NE(outcome.text.find("DZ_FAULT: found grad:model.norm.weights=nan@2, expected a tensor of the model"), std::string::npos) << outcome.text;
  EXPECT_FALSE(fs::exists(temp / "run"));
}

}  // namespace
}  // namespace dz::train::test
