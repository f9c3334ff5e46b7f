// configs/olmo3: the official recipes as files, and their twins that train in seconds.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "cli/run.h"
#include "model/config.h"
#include "optim/golden.h"
#include "train/deviations.h"
#include "train/runs.h"
#include "train/schedule_keys.h"

namespace dz::train::test {
namespace {

fs::path recipe_file(const std::string& name) { return fs::path(DZ_SOURCE) / "configs" / "olmo3" / (name + ".yaml"); }

// OLMo-core's numbers of each stage (src/scripts/official/OLMo3; counts of goldens/conversion/parameter_counts.json with 100,352 rows).
struct Official {
  const char* file;
  int64_t steps, batch_tokens, sequence_length;
  uint64_t data_seed;
  int64_t parameters, ranks, filter;
  const char* schedule;  // name in tests/golden/optim/schedules.json, or "" when it has none
};
constexpr int64_t k7B = 7298617344, k32B = 32234279936;
const Official kOfficial[] = {
    {"7b-stage1", 597046, 4194304, 8192, 34521, k7B, 512, 0, "olmo3_7b_stage1_a"},
    {"7b-stage1-continued", 1413814, 4194304, 8192, 34521, k7B, 512, 0, "olmo3_7b_stage1_b"},
    {"7b-stage2", 47684, 2097152, 8192, 1337, k7B, 128, 0, "olmo3_7b_stage2"},
    {"7b-stage3", 11921, 4194304, 65536, 4123, k7B, 32, 0, "olmo3_7b_stage3"},
    {"32b-stage1", 656000, 8388608, 8192, 34521, k32B, 1024, 32, ""},
    {"32b-stage2-ingredient1", 23842, 4194304, 8192, 42069, k32B, 512, 32, "olmo3_32b_stage2"},
    {"32b-stage2-ingredient2", 23842, 4194304, 8192, 42069, k32B, 512, 32, "olmo3_32b_stage2"},
    {"32b-stage3", 11921, 8388608, 65536, 34521, k32B, 128, 32, "olmo3_32b_stage3"},
};

TEST(OfficialRecipes, SayWhatTheScriptsSay) {
  for (const Official& official : kOfficial) {
    SCOPED_TRACE(official.file);
    const Recipe recipe = load_config(recipe_file(official.file), {}).recipe;
    EXPECT_EQ(recipe.steps, official.steps);
    EXPECT_EQ(recipe.batch * recipe.data.sequence_length, official.batch_tokens);
    EXPECT_EQ(recipe.data.sequence_length, official.sequence_length);
    EXPECT_EQ(recipe.data.seed, official.data_seed);
    EXPECT_EQ(recipe.data.order.dialect, "olmo-core");
    EXPECT_EQ(recipe.data.filter.count, official.filter);
    EXPECT_EQ(model::num_params(recipe.model), official.parameters);
    EXPECT_EQ(recipe.loss_divisor, Divisor::kOlmoCore);
    EXPECT_EQ(recipe.divisor_ranks, official.ranks);
    EXPECT_EQ(recipe.batch % official.ranks, 0);
    EXPECT_EQ(recipe.z_loss, 1e-5);
    EXPECT_EQ(recipe.max_grad_norm, 1.0);
    EXPECT_EQ(recipe.adamw.weight_decay, 0.1);
    EXPECT_EQ(recipe.adamw.no_decay, std::vector<std::string>{"model.embed_tokens.weight"});
    EXPECT_EQ(recipe.skip_step.window, 128);
    EXPECT_EQ(recipe.skip_step.sigma, 6.0f);
    EXPECT_FALSE(recipe.mask_padding);
    const bool long_context = official.sequence_length == 65536, first = std::string_view(official.file).find("stage1") != std::string_view::npos;
    EXPECT_EQ(recipe.data.document_masks, long_context);
    EXPECT_EQ(recipe.data.kind == DataKind::kPacked, long_context);
    EXPECT_EQ(recipe.model.yarn.has_value(), long_context);
    EXPECT_EQ(recipe.init_moments.exp_avg.empty(), first);
    EXPECT_EQ(recipe.initial_step == 1, first);
    if (long_context) {
      EXPECT_EQ(recipe.model.yarn->factor, 8);
      EXPECT_EQ(recipe.data.source_permutation_seed, 123);
      EXPECT_EQ(recipe.data.packing.group_size, 8);
    }
  }
}

int64_t ulps_apart(double a, double b) { return std::abs(std::bit_cast<int64_t>(a) - std::bit_cast<int64_t>(b)); }

// Every rate that OLMo-core's scheduler gives inside the run: to the bit, but for 1 ulp of the cosine, which is up to 2 of the rate in the second
// half of a cosine (tests/optim/schedules_test.cpp).
TEST(OfficialRecipes, HaveTheRatesOfTheirSchedules) {
  for (const Official& official : kOfficial) {
    SCOPED_TRACE(official.file);
    const Recipe recipe = load_config(recipe_file(official.file), {}).recipe;
    const auto& rows = dz::test::golden_json("schedules.json").at("rows");
    const auto row = std::ranges::find_if(rows, [&](const auto& one) { return one.at("name") == official.schedule; });
    ASSERT_EQ(row == rows.end(), std::string_view(official.schedule).empty());
    if (row == rows.end()) continue;
    const optim::ScheduleKind kind = recipe.schedule.kind;
    const int64_t allowed = kind == optim::ScheduleKind::kLinear ? 0 : kind == optim::ScheduleKind::kHalfCosine ? 2 : 1;
    int64_t compared = 0;
    for (const auto& point : row->at("lr")) {
      const auto step = point[0].get<int64_t>();
      if (step < 1 || step > recipe.steps) continue;
      const double rate = dz::test::hex(point[1]), ours = learning_rate(recipe, step, step * official.batch_tokens);
      EXPECT_LE(ulps_apart(ours, rate), allowed) << step << ": " << ours << " " << rate;
      ++compared;
    }
    EXPECT_GE(compared, 25);
  }
  // The stitch, and the constant of the later stages: the first cosine's rate at 2 T tokens.
  const Recipe first = load_config(recipe_file("7b-stage1"), {}).recipe, second = load_config(recipe_file("7b-stage1-continued"), {}).recipe;
  EXPECT_NEAR(learning_rate(first, 597046, 0), 0.00016500017818565782, 1e-19);
  EXPECT_NEAR(learning_rate(second, 596048, 0), 0.00016472419210580088, 1e-19);
  EXPECT_NEAR(learning_rate(first, 476838, 0), load_config(recipe_file("7b-stage2"), {}).recipe.schedule.lr, 1e-19);
}

TEST(OfficialRecipes, AStartNamesEachChoiceThatIsNotOurDefault) {
  EXPECT_TRUE(describe_deviations(load_config(contract_config(), {}).recipe).empty());
  const auto lines = describe_deviations(load_config(recipe_file("7b-stage1"), {}).recipe);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_TRUE(lines[0].starts_with("data.order olmo-core: ")) << lines[0];
  EXPECT_EQ(lines[1],
            "loss.divisor olmo-core, 512 ranks: each rank divides by its own targets, then the ranks are averaged, as OLMo-core; ours would be "
            "global: all targets of the batch alike");
  EXPECT_TRUE(lines[2].starts_with("optimizer.initial_step 1: ")) << lines[2];
  EXPECT_EQ(describe_deviations(load_config(recipe_file("32b-stage3"), {}).recipe).size(), 4u);  // with the filter and the packing, without Adam's 1
}

// Stage after stage through the program: the second part of stage 1 goes on with the whole state, the others with weights and moments.
TEST(OfficialRecipes, TheTinyTwinsRunFromStageToStage) {
  TempDir temp;
  const auto at = [&](const std::string& stage, int64_t step) { return fmt::format("{}/checkpoints/step-{}", (temp / stage).string(), step); };
  const auto start = [&](const std::string& stage, const std::string& from, const std::string& more) {
    std::string command = fmt::format("train '{}' --dir '{}' {}", recipe_file("tiny-" + stage).string(), (temp / stage).string(), more);
    if (!from.empty())
      command += fmt::format(
          " --set recipe.init={0} --set recipe.init_moments.exp_avg={0}/moments.safetensors --set recipe.init_moments.exp_avg_sq={0}/"
          "moments.safetensors",
          from);
    const dz::test::Outcome outcome = dz::test::deltazero(command);
    EXPECT_EQ(outcome.code, 0) << outcome.text;
    EXPECT_NE(outcome.text.find("recipe  data.order olmo-core: "), std::string::npos) << outcome.text;
    return metrics(temp / stage);
  };
  const auto first = start("stage1", "", ""), second = start("stage1-continued", "", "--fork " + at("stage1", 40));
  ASSERT_EQ(first.size(), 50u);
  ASSERT_EQ(second.size(), 40u);  // steps 41 to 80
  EXPECT_EQ(second[0].at("step"), 41);
  EXPECT_EQ(second[0].at("adam_step"), 42);
  EXPECT_EQ(second[0].at("batch_digest"), first[40].at("batch_digest"));
  EXPECT_EQ(second[0].at("loss_hex"), first[40].at("loss_hex"));  // the same state, another rate
  EXPECT_NE(second[0].at("lr"), first[40].at("lr"));
  const auto third = start("stage2", at("stage1-continued", 80), "");
  ASSERT_EQ(third.size(), 20u);
  EXPECT_EQ(third[0].at("adam_step"), 82);
  EXPECT_EQ(third[0].at("tokens_total"), 256);
  EXPECT_LT(third[0].at("loss").get<double>(), first[0].at("loss").get<double>() - 1);  // it starts from what was learned
  EXPECT_EQ(third[19].at("lr").get<double>(), 0);
  const auto last = start("stage3", at("stage2", 20), "");
  ASSERT_EQ(last.size(), 20u);
  EXPECT_EQ(last[0].at("tokens"), 1024);
  EXPECT_LT(last[0].at("loss").get<double>(), first[0].at("loss").get<double>() - 1);
  for (const auto& line : last) EXPECT_FALSE(line.at("skipped").get<bool>());
}

}  // namespace
}  // namespace dz::train::test
