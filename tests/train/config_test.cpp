#include "train/config.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace dz::train {
namespace {

constexpr const char* kSmall = R"(recipe:
  seed: 7
  steps: 40
  batch: 4
  data: {source: generated, sequence_length: 16, generated: {tokens: 1000, documents: 10}}
  model: {d_model: 32, n_layers: 4, n_heads: 4, d_ff: 48, vocab_size: 64, window: 4}
  optimizer: {lr: 0.001}
topology: {threads: 1}
run: {dir: runs/a}
)";

Config parse(const std::string& text, const std::vector<std::string>& sets = {}) { return parse_config(text, "a.yaml", "/base", sets); }

std::string message(const std::string& text, const std::vector<std::string>& sets = {}) {
  try {
    parse(text, sets);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no ConfigError";
}

std::string with(const std::string& from, const std::string& to) {
  std::string text = kSmall;
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(Config, FillsInWhatFollowsFromOtherKeys) {
  const Config config = parse(kSmall);
  EXPECT_EQ(config.recipe.data.seed, 7u);
  EXPECT_EQ(config.recipe.model.n_kv_heads, 4);
  EXPECT_EQ(config.recipe.model.head_dim, 8);
  EXPECT_EQ(config.recipe.schedule.t_max, 40);
  EXPECT_EQ(config.run.dir, "/base/runs/a");
  EXPECT_EQ(config.recipe.model.window_of(2), 4);
  EXPECT_EQ(config.recipe.model.window_of(3), 0);
}

struct Wrong {
  const char* from;
  const char* to;
  const char* says;
};

TEST(Config, RefusesWithPlaceKeyFoundAndExpected) {
  const Wrong wrongs[] = {
      {"seed: 7", "sede: 7", "a.yaml:2: recipe.sede: unknown key\n  did you mean: recipe.seed"},
      {"steps: 40", "steps: many", "a.yaml:3: recipe.steps: found many, expected an integer of at least 1"},
      {"steps: 40", "steps: 0", "found 0"},
      {"steps: 40", "steps: 4.5", "found 4.5"},
      {"  steps: 40\n", "", "recipe.steps: found nothing"},
      {"steps: 40", "steps: 40\n  steps: 41", "a.yaml:4: recipe.steps: found the key twice"},
      {"batch: 4", "batch: 99999999999999999999", "recipe.batch: found 99999999999999999999"},
      {"batch: 4", "batch: 4\n  lanes: 6", "recipe.lanes: found 6, expected a power of two"},
      {"batch: 4", "batch: 4\n  dtype: fp16", "recipe.dtype: found 'fp16', expected one of bf16, fp32"},
      {"lr: 0.001", "lr: nan", "recipe.optimizer.lr: found nan"},
      {"lr: 0.001", "lr: 0.001, betas: [0.9]", "expected two numbers in [0, 1)"},
      {"lr: 0.001", "lr: 0.001, skip_step: {sigam: 6}", "did you mean: recipe.optimizer.skip_step.sigma"},
      {"threads: 1", "micro_batch: 0", "topology.micro_batch: found 0, expected an integer from 1"},
      {"threads: 1", "ranks: 2", "topology.ranks"},
      {"n_heads: 4", "n_heads: 4, n_kv_heads: 3", "n_kv_heads"},
      {"window: 4", "window: 0", "recipe.model.window"},
      {"tokens: 1000", "tokens: 15", "recipe.data.generated.tokens: found 15"},
      {"recipe:", "recipe: [", "not valid YAML"},
      {"topology: {threads: 1}", "topology: 3", "expected a map"},
      {"topology:", "toplogy:", "did you mean: topology"},
  };
  for (const Wrong& wrong : wrongs)
    EXPECT_NE(message(with(wrong.from, wrong.to)).find(wrong.says), std::string::npos) << wrong.to << ": " << message(with(wrong.from, wrong.to));
  EXPECT_EQ(message(kSmall), "no ConfigError");
}

TEST(Config, SetOverridesAndIsNamedInErrors) {
  EXPECT_EQ(parse(kSmall, {"recipe.optimizer.lr=0.5"}).recipe.schedule.lr, 0.5);
  EXPECT_EQ(parse(kSmall, {"recipe.schedule.warmup=3"}).recipe.schedule.warmup, 3);
  EXPECT_EQ(parse(kSmall, {"run.dir=elsewhere"}).run.dir, "elsewhere");
  EXPECT_NE(message(kSmall, {"topology.threads=-1"}).find("--set topology.threads: found -1"), std::string::npos);
  EXPECT_NE(message(kSmall, {"topology.thread=1"}).find("did you mean: topology.threads"), std::string::npos);
  EXPECT_THROW(parse(kSmall, {"topology.threads"}), UsageError);
  EXPECT_THROW(parse(kSmall, {"recipe.seed.x=1"}), UsageError);
}

TEST(Config, ResolvedYamlReadsBackAsTheSameRecipe) {
  const Config config = parse(kSmall);
  const std::string text = recipe_yaml(config.recipe) + topology_yaml(config.topology) + run_yaml(config.run);
  const Config again = parse(text);
  EXPECT_EQ(identify(config.recipe, "d", "").hash(), identify(again.recipe, "d", "").hash());
  EXPECT_EQ(again.run.dir, config.run.dir);
}

TEST(Config, IdentityCoversRecipeAndDataButNotPathsOrTopology) {
  const Config config = parse(kSmall);
  const Identity identity = identify(config.recipe, "d", "");
  EXPECT_EQ(identity.hash(), identify(parse(kSmall, {"topology.threads=2", "run.dir=b", "recipe.data.shards=/x"}).recipe, "d", "").hash());
  EXPECT_NE(identity.hash(), identify(config.recipe, "e", "").hash());
  const Identity other = identify(parse(kSmall, {"recipe.optimizer.lr=0.002"}).recipe, "d", "");
  const std::vector<std::string> lines = differences(identity, other);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("recipe.optimizer.lr"), std::string::npos);
  EXPECT_NE(lines[0].find("run: 0.001"), std::string::npos);
  EXPECT_EQ(differences(identity, parse_identity(to_json(identity), "here")), std::vector<std::string>{});
}

TEST(Config, HelpListsEveryKey) {
  const std::string help = config_help();
  for (const char* key : {"seed:", "sequence_length:", "rope_theta:", "sigma:", "z_loss:", "micro_batch:", "checkpoint_every:"})
    EXPECT_NE(help.find(key), std::string::npos) << key;
}

}  // namespace
}  // namespace dz::train
