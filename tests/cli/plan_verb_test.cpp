#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/run.h"

namespace dz::cli {
namespace {

TEST(PlanVerb, ChoosesTheFastestPresetThatFits) {
  const test::Outcome all = test::deltazero("plan nano --no-time --json");
  ASSERT_EQ(all.code, 0) << all.text;
  const nlohmann::json plan = nlohmann::json::parse(all.text);
  EXPECT_EQ(plan["chosen"], "none");
  const int64_t none = plan["remat"][0]["bytes"], least = plan["remat"].back()["bytes"];
  const nlohmann::json tight = nlohmann::json::parse(test::deltazero("plan nano --no-time --json --memory " + std::to_string(none - 1)).text);
  EXPECT_EQ(tight["chosen"], "minimal_with_context");
  const test::Outcome nothing = test::deltazero("plan nano --no-time --json --memory " + std::to_string(least - 1));
  EXPECT_EQ(nothing.code, 1);
  EXPECT_TRUE(nlohmann::json::parse(nothing.text)["chosen"].is_null());
}

TEST(PlanVerb, RefusesRanksWithoutAnInstanceAndSizesThatAreNone) {
  const test::Outcome ranks = test::deltazero("plan nano --no-time --ranks 9");
  EXPECT_EQ(ranks.code, 78);
  EXPECT_NE(ranks.text.find("8 lanes"), std::string::npos) << ranks.text;
  EXPECT_EQ(test::deltazero("plan nano --no-time --memory much").code, 64);
  EXPECT_EQ(test::deltazero("plan nano --no-time --memory 24").code, 64);  // of what?
  EXPECT_EQ(test::deltazero("plan no-such-file.yaml --no-time").code, 66);
}

}  // namespace
}  // namespace dz::cli
