// Runs whose layers are updated by Muon: the same bits whatever carries them, through skips, kills and forks, and the verbs on their checkpoints.
#include "optim/muon.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/store.h"
#include "cli/run.h"
#include "kernels/table.h"
#include "runs.h"

namespace dz::train::test {
namespace {

using Sets = std::vector<std::string>;

Sets muon(Sets more = {}) {
  Sets sets = {"recipe.optimizer.name=muon",
               "recipe.optimizer.muon.lr=0.02",
               "recipe.steps=8",
               "recipe.schedule.warmup=2",
               "recipe.batch=4",
               "run.checkpoint_every=2",
               "run.digest_every=1"};
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

std::vector<Recorded> digests(const fs::path& run, int64_t steps) {
  std::vector<Recorded> all;
  for (int64_t step = 1; step <= steps; ++step) all.push_back(digest_at(run, step));
  return all;
}

std::vector<float> moment(const fs::path& checkpoint, const std::string& name) {
  const auto source = checkpoint::TensorSource::open(checkpoint / "moments.safetensors");
  const checkpoint::StoredTensor& stored = source.at(name);
  std::vector<float> values(static_cast<size_t>(stored.elements()));
  source.read_f32(stored, values);
  return values;
}

bool all_zero(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float x) { return std::bit_cast<uint32_t>(x) == 0; });
}

class MuonRuns : public testing::Test {
 protected:
  fs::path run(const std::string& name, const Sets& more = {}, int64_t stop_after = 4) {
    train_contract(temp_ / name, muon(more), stop_after);
    return temp_ / name;
  }
  static fs::path newest(const fs::path& run) { return checkpoint::find_newest(run / "checkpoints").checkpoint.value().path; }

  TempDir temp_;
};

TEST_F(MuonRuns, EveryCarrierGivesTheSameBits) {
  const kernels::Isa best = kernels::available().back();
  for (const std::string dtype : {"bf16", "fp32"}) {
    const Sets recipe = {"recipe.dtype=" + dtype};
    const auto with = [&](const Sets& topology) {
      Sets sets = recipe;
      sets.insert(sets.end(), topology.begin(), topology.end());
      return sets;
    };
    const std::vector<Recorded> expected = digests(run(dtype, with({"topology.threads=1", "topology.micro_batch=1"})), 4);
    EXPECT_EQ(digests(run(dtype + "2", with({"topology.threads=2", "topology.micro_batch=4", "topology.remat=full"})), 4), expected);
    for (const kernels::Isa isa : kernels::available()) {
      kernels::activate(isa);
      const std::string name = dtype + std::string(kernels::name_of(isa));
      EXPECT_EQ(digests(run(name, with({"topology.threads=2"})), 4), expected) << name;
    }
    kernels::activate(best);
    // One coefficient that is another by its last digit is another run.
    EXPECT_NE(digests(run(dtype + "other", with({"recipe.optimizer.muon.ns_coefficients=[3.4445, -4.775, 2.0316]"})), 4), expected);
  }
}

TEST_F(MuonRuns, MomentumLiesInExpAvgAndLayersHaveNoSecondMoment) {
  const fs::path checkpoint = newest(run("a"));
  const Config config = load_config(contract_config(), muon());
  int matrices = 0, others = 0;
  for (const model::ParameterSpec& spec : model::parameter_specs(config.recipe.model)) {
    const bool by_muon = optim::is_muon_matrix(spec.name, spec.shape);
    EXPECT_FALSE(all_zero(moment(checkpoint, "exp_avg." + spec.name))) << spec.name;
    EXPECT_EQ(all_zero(moment(checkpoint, "exp_avg_sq." + spec.name)), by_muon) << spec.name;
    (by_muon ? matrices : others)++;
  }
  EXPECT_EQ(matrices, 7 * 4);
  EXPECT_GT(others, 0);
}

TEST_F(MuonRuns, LearnsAndIsNotAdamW) {
  const auto lines = metrics(run("a", {}, 8));
  ASSERT_EQ(lines.size(), 8u);
  EXPECT_LT(lines[7]["loss"].get<double>(), lines[0]["loss"].get<double>());
  // Of the tensors that AdamW keeps, the first update is the same; of the matrices none is.
  run("adamw", {"recipe.optimizer.name=adamw", "recipe.optimizer.muon.lr=0", "run.checkpoint_every=1"}, 1);
  run("muon", {"run.checkpoint_every=1"}, 1);
  const checkpoint::StateDigests a = checkpoint::read_digests(checkpoint::open_checkpoint(temp_ / "adamw" / "checkpoints" / "step-1"));
  const checkpoint::StateDigests b = checkpoint::read_digests(checkpoint::open_checkpoint(temp_ / "muon" / "checkpoints" / "step-1"));
  const Config config = load_config(contract_config(), muon());
  const std::vector<model::ParameterSpec> specs = model::parameter_specs(config.recipe.model);
  for (size_t i = 0; i < specs.size(); ++i)
    EXPECT_EQ(a.parameters.tensors[i] == b.parameters.tensors[i], !optim::is_muon_matrix(specs[i].name, specs[i].shape)) << specs[i].name;
}

TEST_F(MuonRuns, AStopAtEachStepAndASkipLeaveTheBits) {
  const std::vector<Recorded> expected = digests(run("whole", {}, 6), 6);
  for (int64_t stop = 1; stop <= 6; ++stop) run("broken", {}, stop);
  EXPECT_EQ(digests(temp_ / "broken", 6), expected);
  ::setenv("DZ_FAULT", "grad:*=nan@3", 1);
  run("struck", {}, 4);
  ::unsetenv("DZ_FAULT");
  EXPECT_TRUE(metrics(temp_ / "struck")[2]["skipped"].get<bool>());
  EXPECT_EQ(digest_at(temp_ / "struck", 3).parameters, digest_at(temp_ / "struck", 2).parameters);
  EXPECT_EQ(digest_at(temp_ / "struck", 3).moments, digest_at(temp_ / "struck", 2).moments);
  EXPECT_NE(digest_at(temp_ / "struck", 4).parameters, digest_at(temp_ / "struck", 3).parameters);
  // The clip acts on momentum.
  EXPECT_NE(digest_at(run("clipped", {"recipe.optimizer.max_grad_norm=0.1"}, 1), 1).moments, expected[0].moments);
}

TEST_F(MuonRuns, AKillAtEachSaveLeavesTheBits) {
  const std::vector<Recorded> expected = digests(run("whole", {}, 8), 8);
  std::vector<std::string> command = {"train", contract_config().string(), "--dir", (temp_ / "killed").string()};
  for (const std::string& set : muon()) command.insert(command.end(), {"--set", set});
  int kills = 0;
  for (const char* crash : {"save:8", "save:9", "save:10", "save:11"}) {
    ::setenv("DZ_TEST_CRASH", crash, 1);
    kills += wait_for(start(command)) == 1000 + SIGKILL;
    ::unsetenv("DZ_TEST_CRASH");
  }
  EXPECT_GT(kills, 0);
  EXPECT_EQ(wait_for(start(command)), 0);
  EXPECT_EQ(digest_at(temp_ / "killed", 8), expected.back());
}

TEST_F(MuonRuns, ForksFromAdamWAndBack) {
  const fs::path adamw = run("adamw", {"recipe.optimizer.name=adamw", "recipe.optimizer.muon.lr=0"}, 2);
  const auto fork = [&](const fs::path& parent, const std::string& name, const Sets& sets) {
    testing::internal::CaptureStdout();
    Sets all = muon(sets);
    all.push_back("run.dir=" + (temp_ / name).string());
    train({.config = load_config(contract_config(), all), .stop_after = 6, .fork = newest(parent)}, {});
    return testing::internal::GetCapturedStdout();
  };
  const std::string said = fork(adamw, "muon", {});
  EXPECT_NE(said.find("recipe.optimizer.name"), std::string::npos) << said;
  EXPECT_NE(said.find("Muon on 28 matrices of the layers: peak 0.02, weight decay 0.1"), std::string::npos) << said;
  fork(adamw, "adamw2", {"recipe.optimizer.name=adamw", "recipe.optimizer.muon.lr=0"});
  EXPECT_NE(digest_at(temp_ / "muon", 6).parameters, digest_at(temp_ / "adamw2", 6).parameters);
  // Another recipe is refused without a fork.
  EXPECT_THROW(run("muon", {"recipe.optimizer.muon.momentum=0.9"}, 7), ConfigError);
}

TEST_F(MuonRuns, TheVerbsTakeItsCheckpoints) {
  const fs::path a = run("a", {"topology.threads=1"}), b = run("b", {"topology.threads=2"});
  const auto quoted = [](const fs::path& path) { return " '" + path.string() + "'"; };
  const dz::test::Outcome same = dz::test::deltazero("verify" + quoted(a) + quoted(b));
  EXPECT_EQ(same.code, 0) << same.text;
  EXPECT_NE(same.text.find("DELTA 0"), std::string::npos) << same.text;
  const dz::test::Outcome inspected = dz::test::deltazero("inspect" + quoted(a) + " --json");
  EXPECT_EQ(nlohmann::json::parse(inspected.text)["digest"]["moments"], digest_at(a, 4).moments);

  const fs::path hf = temp_ / "hf";
  const dz::test::Outcome converted = dz::test::deltazero("convert --moments" + quoted(a) + quoted(hf));
  ASSERT_EQ(converted.code, 0) << converted.text;
  // What was converted can begin a run: the same momentum, read from the two files.
  const Sets from = {"recipe.init=" + hf.string(), "recipe.init_moments.exp_avg=" + (hf / "exp_avg.safetensors").string(),
                     "recipe.init_moments.exp_avg_sq=" + (hf / "exp_avg_sq.safetensors").string(), "recipe.optimizer.initial_step=4"};
  EXPECT_EQ(metrics(run("c", from, 1)).size(), 1u);
}

}  // namespace
}  // namespace dz::train::test
