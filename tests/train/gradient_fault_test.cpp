#include "train/gradient_fault.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "train/config.h"
#include "train/runs.h"

namespace dz::train {
namespace {

const model::ModelConfig& contract_model() {
  static const model::ModelConfig model = load_config(test::contract_config(), {}).recipe.model;
  return model;
}

GradientFault parsed(const std::string& text) { return parse_gradient_fault(text, contract_model()).value(); }

TEST(GradientFault, StrikesOneElementOneTensorOrAll) {
  model::Parameters gradient(contract_model());
  std::ranges::fill(gradient.arena(), 0.5f);
  const auto at = [&](const char* name, size_t element) { return gradient.tensor(gradient.index_of(name))[element]; };

  parsed("grad:model.layers.1.mlp.down_proj.weight[3,5]=nan@20").apply(gradient);  // [72, 104]
  EXPECT_TRUE(std::isnan(at("model.layers.1.mlp.down_proj.weight", 3 * 104 + 5)));
  EXPECT_EQ(at("model.layers.1.mlp.down_proj.weight", 3 * 104 + 4), 0.5f);
  EXPECT_EQ(at("model.layers.2.mlp.down_proj.weight", 3 * 104 + 5), 0.5f);

  parsed("grad:model.norm.weight=-inf@1").apply(gradient);
  for (const size_t element : {0, 71}) EXPECT_EQ(at("model.norm.weight", element), -std::numeric_limits<float>::infinity());

  parsed("grad:*=x64@20").apply(gradient);
  EXPECT_EQ(at("lm_head.weight", 7), 32.0f);
  EXPECT_EQ(at("model.embed_tokens.weight", 0), 32.0f);
}

TEST(GradientFault, HoldsForTheStepsGiven) {
  const GradientFault one = parsed("grad:*=nan@20"), some = parsed("grad:*=x0.5@3-5");
  EXPECT_FALSE(one.strikes(19));
  EXPECT_TRUE(one.strikes(20));
  EXPECT_FALSE(one.strikes(21));
  EXPECT_TRUE(some.strikes(3) && some.strikes(5) && !some.strikes(2) && !some.strikes(6));
  EXPECT_FALSE(parse_gradient_fault("", contract_model()).has_value());
}

TEST(GradientFault, RefusesEveryOtherText) {
  for (const char* text : {"nan@20",
                           "grad:",
                           "grad:*",
                           "grad:*=nan",
                           "grad:*@20",
                           "grad:*=@20",
                           "grad:*=2@20",
                           "grad:*=x@20",
                           "grad:*=xnan@20",
                           "grad:*=xinf@20",
                           "grad:*=x1e99@20",
                           "grad:*=nan@0",
                           "grad:*=nan@-3",
                           "grad:*=nan@5-4",
                           "grad:*=nan@5-",
                           "grad:*=nan@99999999999999999999",
                           "grad:*[0]=nan@20",
                           "grad:model.norm=nan@20",
                           "grad:model.norm.weight[72]=nan@20",
                           "grad:model.norm.weight[-1]=nan@20",
                           "grad:model.norm.weight[0,0]=nan@20",
                           "grad:model.norm.weight[]=nan@20",
                           "grad:model.norm.weight[0=nan@20",
                           "grad:model.norm.weight[0]x=nan@20",
                           "grad:[0]=nan@20",
                           "grad:=nan@20",
                           "grad:*=nan@20 ",
                           "@=grad:"})
    EXPECT_THROW(parse_gradient_fault(text, contract_model()), UsageError) << text;
}

}  // namespace
}  // namespace dz::train
