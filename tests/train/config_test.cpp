#include "train/config.h"

#include <gtest/gtest.h>

#include <algorithm>

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
      {"lr: 0.001", "lr: 0.001, name: moun", "recipe.optimizer.name: found 'moun', expected one of adamw, muon"},
      {"lr: 0.001", "lr: 0.001, form: fused", "recipe.optimizer.form: found 'fused', expected one of foreach, single"},
      {"lr: 0.001", "lr: 0.001, muon: {momentum: 0.9}",
       "recipe.optimizer.muon.momentum: found 0.9, expected this key only with recipe.optimizer.name: muon"},
      {"lr: 0.001", "lr: 0.001, name: muon, muon: {momentun: 0.9}", "did you mean: recipe.optimizer.muon.momentum"},
      {"lr: 0.001", "lr: 0.001, name: muon, muon: {momentum: 1.5}", "recipe.optimizer.muon.momentum: found 1.5"},
      {"lr: 0.001", "lr: 0.001, name: muon, muon: {ns_steps: 100}", "recipe.optimizer.muon.ns_steps: found 100"},
      {"lr: 0.001", "lr: 0.001, name: muon, muon: {ns_coefficients: [3.4, -4.7]}", "recipe.optimizer.muon.ns_coefficients: found 2 numbers"},
      {"lr: 0.001", "lr: 0.001, name: muon, muon: {nesterov: maybe}", "recipe.optimizer.muon.nesterov: found maybe"},
      {"lr: 0.001", "lr: 0.001, name: muon, muon: {adjust_lr_fn: spectral}",
       "recipe.optimizer.muon.adjust_lr_fn: found 'spectral', expected one of original, match_rms_adamw"},
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

// Keys that came later are part of a recipe's identity only where they say something.
TEST(Config, TheOptimizersKeysAndTheIdentity) {
  const auto hash = [](const std::string& keys) { return identify(parse(with("lr: 0.001", "lr: 0.001" + keys)).recipe, "d", "").hash(); };
  EXPECT_EQ(hash(""), hash(", name: adamw, form: foreach, muon: {momentum: 0.95, lr: 0}"));
  EXPECT_EQ(hash(", name: muon"), hash(", name: muon, muon: {momentum: 0.95, ns_coefficients: [3.4445, -4.775, 2.0315], eps: 1e-7}"));
  std::vector<std::string> hashes = {hash("")};
  for (const char* keys : {", form: single", ", name: muon", ", name: muon, muon: {lr: 0.02}", ", name: muon, muon: {nesterov: false}",
                           ", name: muon, muon: {adjust_lr_fn: match_rms_adamw}", ", name: muon, muon: {weight_decay: 0}"}) {
    EXPECT_EQ(std::ranges::find(hashes, hash(keys)), hashes.end()) << keys;
    hashes.push_back(hash(keys));
  }
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

TEST(Config, BriefSpellingsMeanTheLongOnes) {
  const std::string data = "data: {source: generated, sequence_length: 16, generated: {tokens: 1000, documents: 10}}";
  const auto of_files = [&](const std::string& keys) {
    return parse(with(data, "data: {files: [/a.npy], sequence_length: 16, dtype: uint16, " + keys + "}"));
  };
  const auto hash = [](const Config& config) { return identify(config.recipe, "d", "").hash(); };
  const Config brief = of_files("order: olmo-core, documents: none, filter: {count: 32}");
  EXPECT_EQ(brief.recipe.data.source, DataSource::kFiles);
  EXPECT_EQ(brief.recipe.data.order.dialect, "olmo-core");
  EXPECT_FALSE(brief.recipe.data.document_masks);
  EXPECT_EQ(hash(brief), hash(of_files("source: files, order: {dialect: olmo-core}, document_masks: false, filter: {count: 32, periods: 13}")));
  EXPECT_EQ(hash(of_files("documents: eos")), hash(of_files("document_masks: true")));
  EXPECT_NE(hash(brief), hash(of_files("order: olmo-core, filter: {count: 32}")));
  EXPECT_EQ(parse(recipe_yaml(brief.recipe) + topology_yaml(brief.topology)).recipe.data.document_masks, false);
  EXPECT_EQ(parse(kSmall, {"recipe.data.order=maxtext"}).recipe.data.order.dialect, "maxtext");

  const auto says = [&](const std::string& keys) { return message(with(data, "data: {files: [/a.npy], sequence_length: 16, " + keys + "}")); };
  EXPECT_NE(says("order: olmo").find("recipe.data.order.dialect: found 'olmo', expected one of keyed"), std::string::npos) << says("order: olmo");
  EXPECT_NE(says("filter: 32").find("recipe.data.filter: found 32, expected a map"), std::string::npos);
  EXPECT_NE(says("kind: packed, documents: none").find("recipe.data.documents.boundaries: found none"), std::string::npos);
  EXPECT_NE(says("document_masks: true, documents: none").find("expected eos"), std::string::npos);
  EXPECT_NE(says("shards: /s").find("recipe.data.shards: found /s"), std::string::npos);
  EXPECT_NE(says("order: [olmo-core]").find("recipe.data.order: found [olmo-core], expected a map"), std::string::npos);
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
  EXPECT_EQ(identity.hash(), identify(parse(kSmall, {"topology.threads=2", "run.dir=b"}).recipe, "d", "").hash());
  const auto of_files = [](const std::string& list) {
    return identify(parse(kSmall, {"recipe.data.source=files", "recipe.data.files=" + list}).recipe, "d", "").hash();
  };
  EXPECT_EQ(of_files("[/a.npy]"), of_files("[/b.npy]"));
  EXPECT_NE(identity.hash(), identify(config.recipe, "e", "").hash());
  const Identity other = identify(parse(kSmall, {"recipe.optimizer.lr=0.002"}).recipe, "d", "");
  const std::vector<std::string> lines = differences(identity, other);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("recipe.optimizer.lr"), std::string::npos);
  EXPECT_NE(lines[0].find("run: 0.001"), std::string::npos);
  EXPECT_EQ(differences(identity, parse_identity(to_json(identity), "here")), std::vector<std::string>{});
}

// Each key with a source, kind or order that does not read it, and with one that does.
TEST(Config, KeysThatNothingReadsAreRefused) {
  using Sets = std::vector<std::string>;
  const Sets files = {"source=files", "files=[a.npy]"}, mix = {"source=mix", "mix.file=m.txt", "mix.tokenizer=t"};
  const Sets mixture = {"source=mixture", "mixture=m.yaml"}, shards = {"source=shards", "shards=d"};
  struct Case {
    const char* key;
    const char* value;
    Sets without, with;
    const char* unless;
  };
  const auto and_with = [](Sets sets, const char* one) {
    sets.emplace_back(one);
    return sets;
  };
  const Case cases[] = {
      {"shards", "d", files, {"source=shards"}, "source: shards"},
      {"files", "[a.npy]", shards, {"source=files"}, "source: files"},
      {"label_masks", "[a.npy]", mix, files, "source: files"},
      {"mix.name", "x", files, mix, "source: mix"},
      {"mix.base_dir", "x", mixture, mix, "source: mix"},
      {"mixture", "x", mix, {"source=mixture"}, "source: mixture"},
      {"tokens.eos_id", "3", shards, mix, "source: files, mix or mixture"},
      {"tokens.tokenizer", "t.json", {}, shards, "source: shards, files"},
      {"source_permutation_seed", "3", mixture, mix, "source: files or mix"},
      {"kind", "packed", {}, files, "source: shards, files or mix"},
      {"documents.keep_tail", "true", files, and_with(files, "kind=padded"), "kind: padded"},
      {"documents.long_documents", "fragment", and_with(files, "kind=padded"), and_with(files, "kind=packed"), "kind: packed"},
      {"packing.group_size", "2", and_with(files, "kind=vsl"), and_with(files, "kind=packed"), "kind: packed"},
      {"interleaved.chunks", "3", files, and_with(files, "kind=interleaved"), "kind: interleaved"},
      {"vsl.cycles", "3", files, and_with(files, "kind=vsl"), "kind: vsl"},
      {"warm_up.batch", "['1:2']", and_with(files, "kind=vsl"), files, "kind other than vsl"},
      {"order.dialect", "maxtext", and_with(files, "kind=vsl"), files, "kind other than vsl"},
      {"order.hosts", "2", and_with(files, "order.dialect=olmo-core"), and_with(files, "order.dialect=maxtext"), "order.dialect: maxtext"},
      {"order.workers", "2", {}, {"order.dialect=maxtext"}, "order.dialect: maxtext"},
      {"order.index", "i.json", files, and_with(files, "order.dialect=maxtext"), "order.dialect: maxtext"},
      {"order.state", "[s.json]", {}, files, "source: shards"},
  };
  for (const Case& one : cases) {
    const auto with_key = [&](const Sets& others) {
      Sets sets{std::string("recipe.data.") + one.key + "=" + one.value};
      for (const std::string& other : others) sets.push_back("recipe.data." + other);
      return message(kSmall, sets);
    };
    const std::string refused = with_key(one.without);
    EXPECT_NE(refused.find(std::string("--set recipe.data.") + one.key + ": found "), std::string::npos) << refused;
    EXPECT_NE(refused.find(std::string("expected this key only with recipe.data.") + one.unless), std::string::npos) << refused;
    EXPECT_EQ(with_key(one.with), "no ConfigError") << one.key;
  }
  const std::string line = message(with("source: generated", "source: generated, shards: d"));
  EXPECT_NE(line.find("a.yaml:5: recipe.data.shards: found"), std::string::npos) << line;
}

// The recipe that a run keeps names every key with its value.
TEST(Config, KeysOfOtherSourcesWithTheirDefaultsAreTaken) {
  const Config config = parse(kSmall);
  const std::string text = recipe_yaml(config.recipe);
  for (const char* key : {"label_masks: []", "group_size: 1", "min_length: 256", "base_dir: \"\""})
    EXPECT_NE(text.find(key), std::string::npos) << text;
  EXPECT_EQ(message(text), "no ConfigError");
}

TEST(Config, YarnStretchesFullLayersAndIsPartOfTheIdentityOnlyWhenGiven) {
  const Config plain = parse(kSmall);
  EXPECT_FALSE(plain.recipe.model.yarn);
  for (const auto& [key, value] : identify(plain.recipe, "d", "").fields) EXPECT_EQ(key.find("yarn"), std::string::npos) << key;

  const std::vector<std::string> yarn = {"recipe.rope.yarn.factor=8", "recipe.rope.yarn.original_max_position_embeddings=16"};
  const Config stretched = parse(kSmall, yarn);
  ASSERT_TRUE(stretched.recipe.model.yarn);
  EXPECT_EQ(stretched.recipe.model.yarn->attention_factor, 1.2079441541679836);
  EXPECT_EQ(stretched.recipe.model.max_position_embeddings, 128);
  EXPECT_FALSE(stretched.recipe.model.rope_of(2).yarn);
  EXPECT_TRUE(stretched.recipe.model.rope_of(3).yarn);
  EXPECT_NE(identify(stretched.recipe, "d", "").hash(), identify(plain.recipe, "d", "").hash());
  const Config again = parse_config(recipe_yaml(stretched.recipe) + "run: {dir: a}\n", "again", "/", {});
  EXPECT_EQ(identify(again.recipe, "d", "").hash(), identify(stretched.recipe, "d", "").hash());
  EXPECT_EQ(again.recipe.model, stretched.recipe.model);

  std::vector<std::string> all = yarn;
  all.push_back("recipe.rope.yarn_layers=all");
  EXPECT_TRUE(parse(kSmall, all).recipe.model.rope_of(2).yarn);
  EXPECT_NE(message(kSmall, {"recipe.rope.yarn.beta_fast=16"}).find("recipe.rope.yarn.factor"), std::string::npos);
  EXPECT_NE(message(kSmall, {"recipe.rope.yarn_layers=all"}).find("recipe.rope.yarn_layers"), std::string::npos);
  EXPECT_NE(message(kSmall, {"recipe.rope.yarn.factor=0.5"}).find("recipe.rope.yarn.factor"), std::string::npos);
}

TEST(Config, ANameFillsInTheShapeAndKeysBesideItChangeIt) {
  const std::string shape = "d_model: 32, n_layers: 4, n_heads: 4, d_ff: 48, vocab_size: 64, window: 4";
  const Recipe named = parse(with(shape, "name: olmo3_190M")).recipe;
  EXPECT_EQ(model::num_params(named.model), 267'424'512);
  EXPECT_EQ(named.model.window_of(2), 4096);
  EXPECT_EQ(named.model.window_of(3), 0);
  const Recipe written = parse(with(shape, "d_model: 768, n_layers: 12, n_heads: 12, d_ff: 3072, vocab_size: 100352, window: 4096")).recipe;
  EXPECT_EQ(named.model, written.model);
  EXPECT_EQ(identify(named, "d", "").hash(), identify(written, "d", "").hash()) << "the shape counts, not how it was given";
  EXPECT_EQ(parse_config(recipe_yaml(named) + "run: {dir: a}\n", "again", "/", {}).recipe.model, named.model);

  const Recipe changed = parse(with(shape, "name: olmo2_190M, vocab_size: 100278, n_layers: 2")).recipe;
  EXPECT_EQ(changed.model.vocab_size, 100278);
  EXPECT_EQ(changed.model.n_layers, 2);
  EXPECT_EQ(changed.model.layers.size(), 2u);
  EXPECT_EQ(changed.model.window_of(0), 0);
  EXPECT_NE(message(with(shape, "name: olmo3_8B")).find("recipe.model"), std::string::npos);
}

TEST(Config, HelpListsEveryKey) {
  const std::string help = config_help();
  for (const char* key : {"seed:", "sequence_length:", "rope_theta:", "sigma:", "z_loss:", "micro_batch:", "checkpoint_every:"})
    EXPECT_NE(help.find(key), std::string::npos) << key;
}

}  // namespace
}  // namespace dz::train
