// `train` against OLMo-core's own trainer, step by step: the same instances, the same losses and norms, the same weights and moments.
#include "train/trajectory.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "checkpoint/manifest.h"
#include "cli/run.h"
#include "data/ledger.h"

namespace dz::train::test {
namespace {

using Sets = std::vector<std::string>;

std::vector<std::vector<int64_t>> consumed(const fs::path& run) {
  std::vector<std::vector<int64_t>> ids;
  data::read_ledger(run / "ledger" / "consumed.bin", [&](const data::LedgerRecord& record) { ids.push_back(record.ids); });
  return ids;
}

// What must be equal to the last bit: which instances, which step was skipped, Adam's step, the rate, how much was masked.
void expect_exact(const std::vector<Json>& lines, const fs::path& run, const std::string& name) {
  const Json& golden = golden_run(name);
  const size_t steps = golden.at("float32").at("ce_loss").size();
  ASSERT_EQ(lines.size(), steps);
  const Json& indices = golden.at("indices").empty() ? golden_run("base").at("indices") : golden.at("indices");
  EXPECT_EQ(consumed(run), indices.get<std::vector<std::vector<int64_t>>>());
  const Json& adam = golden.at("float32").at("adam_step");
  for (size_t i = 0; i < steps; ++i) {
    EXPECT_EQ(lines[i].at("lr").get<double>(), golden_value(name, "lr", i)) << "step " << i + 1;
    EXPECT_EQ(lines[i].at("skipped").get<bool>(), golden_value(name, "step_skipped", i) == 1) << "step " << i + 1;
    EXPECT_EQ(lines[i].at("adam_step").get<int64_t>(), adam.empty() ? static_cast<int64_t>(i) + 1 : adam[i].get<int64_t>()) << "step " << i + 1;
    const bool ranks = lines[i].contains("ranks");
    const Json& masked = ranks ? lines[i].at("ranks").at("masked_labels").at(0) : lines[i].at("masked_labels");
    EXPECT_EQ(masked.get<double>(), golden_value(name, "masked_labels", i)) << "step " << i + 1;
  }
}

// Both series of a golden, with our drift from float64 beside torch's.
void expect_close(const std::vector<Json>& lines, const std::string& name, const std::string& torch) {
  const Drift float32 = drift_from(lines, name, "float32"), float64 = drift_from(lines, name, "float64");
  EXPECT_TRUE(float32.within()) << float32.ce << " " << float32.z << " " << float32.relative_norm;
  EXPECT_TRUE(float64.within()) << float64.ce << " " << float64.z << " " << float64.relative_norm;
  const Json& theirs = trajectories().at("torch_drift").at("max_by_run").at(torch);
  const std::string line = fmt::format(
      "{:<20} against float64, worst step (ours | torch's): ce {:.1e} | {:.1e}   z {:.1e} | {}   norm {:.1e} | {:.1e}", name, float64.ce,
      theirs.at("ce_loss").get<double>(), float64.z, theirs.contains("z_loss") ? fmt::format("{:.1e}", theirs.at("z_loss").get<double>()) : "-",
      float64.norm, theirs.at("grad_norm").get<double>());
  std::printf("%s\n", line.c_str());
  testing::Test::RecordProperty(name, line);
}

using Tensors = std::map<std::string, std::vector<float>>;

Tensors read_all(const fs::path& file) {
  const checkpoint::TensorSource source = checkpoint::TensorSource::open(file);
  Tensors tensors;
  for (const checkpoint::StoredTensor& stored : source.tensors()) {
    std::vector<float>& values = tensors[stored.name];
    values.resize(static_cast<size_t>(stored.elements()));
    source.read_f32(stored, values);
  }
  return tensors;
}

double relative_l2(const std::vector<float>& ours, const std::vector<float>& theirs, size_t stride = 1) {
  double gap = 0, norm = 0;
  for (size_t i = 0; i < theirs.size(); ++i) {
    const double a = static_cast<double>(ours[i * stride]), b = static_cast<double>(theirs[i]);
    gap += (a - b) * (a - b);
    norm += b * b;
  }
  return norm > 0 ? std::sqrt(gap / norm) : std::sqrt(gap);
}

// "param", "exp_avg" and "exp_avg_sq" of a checkpoint, by the name of the weight.
Tensors state_of(const fs::path& checkpoint, const std::string& kind) {
  if (kind == "param") return read_all(checkpoint / checkpoint::kModelName);
  Tensors of_kind;
  for (auto& [name, values] : read_all(checkpoint / checkpoint::kMomentsName)) {
    if (name.starts_with(kind + ".")) of_kind[name.substr(kind.size() + 1)] = std::move(values);
  }
  return of_kind;
}

const char* const kKinds[] = {"param", "exp_avg", "exp_avg_sq"};

// The worst tensor of the state after `step`, by kind: against every element at step 60, against the sampled ones at steps 1, 2 and 10.
std::map<std::string, double> state_drift(const fs::path& run, int64_t step) {
  const fs::path checkpoint = run / "checkpoints" / fmt::format("step-{}", step);
  std::map<std::string, double> worst;
  for (const std::string kind : kKinds) {
    const Tensors ours = state_of(checkpoint, kind);
    const std::string prefix = step == 60 ? "" : fmt::format("step{}.{}.", step, kind);
    for (const auto& [name, theirs] : read_all(training_golden(step == 60 ? "step60_" + kind + ".safetensors" : "states_sampled.safetensors"))) {
      if (!name.starts_with(prefix)) continue;
      const std::vector<float>& own = ours.at(name.substr(prefix.size()));
      worst[kind] = std::max(worst[kind], relative_l2(own, theirs, (own.size() + theirs.size() - 1) / theirs.size()));
    }
  }
  return worst;
}

// Through the program, in four starts: its checkpoints at 1, 2, 10 and 60 are what OLMo-core had there.
TEST(Trajectory, TheProgramFollowsOlmoCoreForSixtySteps) {
  TempDir temp;
  const fs::path config = write_trajectory_config(temp), run = temp / "run";
  for (const char* stop : {" --stop-after 1", " --stop-after 2", " --stop-after 10", ""}) {
    const dz::test::Outcome outcome =
        dz::test::deltazero(fmt::format("train '{}' --dir '{}' --set run.keep=0{}", config.string(), run.string(), stop));
    ASSERT_EQ(outcome.code, 0) << outcome.text;
  }
  const std::vector<Json> lines = metrics(run);
  expect_exact(lines, run, "base");
  expect_close(lines, "base", "base vs float64");
  for (const int64_t step : {1, 2, 10, 60}) {
    std::map<std::string, double> drift = state_drift(run, step);
    std::printf("  state after step %2d, worst tensor: param %.1e  exp_avg %.1e  exp_avg_sq %.1e\n", static_cast<int>(step), drift["param"],
                drift["exp_avg"], drift["exp_avg_sq"]);
    // Measured: float32 OLMo-core against float64 1.3e-6, 6.2e-6, 3.5e-6 (README of the goldens).
    EXPECT_LE(drift["param"], 1e-5) << step;
    EXPECT_LE(drift["exp_avg"], 2e-5) << step;
    EXPECT_LE(drift["exp_avg_sq"], 2e-5) << step;
  }
  // The control: the state of one step is not that of another.
  EXPECT_GT(relative_l2(state_of(run / "checkpoints" / "step-2", "exp_avg").at("model.norm.weight"),
                        state_of(run / "checkpoints" / "step-10", "exp_avg").at("model.norm.weight")),
            0.1);
  // A row of the embedding whose token never occurs has no gradient and no decay: token 510 is padding, which these tokens lack.
  const Tensors weights = state_of(run / "checkpoints" / "step-60", "param"), initial = read_all(training_golden("init.safetensors"));
  const std::vector<float>&row = weights.at("model.embed_tokens.weight"), &before = initial.at("model.embed_tokens.weight");
  EXPECT_TRUE(std::equal(row.begin() + 510L * 64, row.begin() + 511L * 64, before.begin() + 510L * 64));
  EXPECT_FALSE(std::equal(row.begin() + 511L * 64, row.end(), before.begin() + 511L * 64));
}

// One micro-batch instead of two: here not even a bit moves, where torch's float32 moves the loss by 9.5e-7.
TEST(Trajectory, AWholeBatchAtOnceIsTheSameRun) {
  TempDir temp;
  const fs::path config = write_trajectory_config(temp);
  const std::vector<Json> lines = train_trajectory(config, temp / "run", {"topology.micro_batch=8", "run.digest_every=60"});
  expect_exact(lines, temp / "run", "whole_batch");
  const Drift float32 = drift_from(lines, "whole_batch", "float32");
  EXPECT_TRUE(float32.within()) << float32.ce << " " << float32.z << " " << float32.relative_norm;
  const std::vector<Json> halves = train_trajectory(config, temp / "halves", {"run.digest_every=60"});
  EXPECT_EQ(lines.back().at("digest"), halves.back().at("digest"));
  for (const auto& [kind, gap] : state_drift(temp / "run", 60)) EXPECT_LE(gap, kind == "param" ? 1e-4 : 5e-4) << kind;
}

// OLMo-core saves a checkpoint before the first step, and saving leaves Adam's step at 1.
TEST(Trajectory, AdamsStepMayBeginAtOne) {
  TempDir temp;
  const fs::path config = write_trajectory_config(temp);
  const std::vector<Json> lines = train_trajectory(config, temp / "run", {"recipe.optimizer.initial_step=1"});
  expect_exact(lines, temp / "run", "step0_checkpoint");
  expect_close(lines, "step0_checkpoint", "step0 checkpoint vs float64");
  const Drift control = drift_from(train_trajectory(config, temp / "from-zero", {}, 5), "step0_checkpoint", "float64");
  EXPECT_GT(control.ce, 100 * kLossLimit);
}

TEST(Trajectory, FilteredInstancesCountAsOlmoCoreCountsThem) {
  TempDir temp;
  const fs::path config = write_trajectory_config(temp, {.tokens = training_golden("tokens_periodic.npy")});
  const std::vector<Json> lines = train_trajectory(config, temp / "run", {"recipe.data.filter.count=32", "recipe.loss.divisor=olmo-core"});
  expect_exact(lines, temp / "run", "instance_filter");
  expect_close(lines, "instance_filter", "instance filter vs float64");
  for (size_t i = 0; i < lines.size(); ++i)
    EXPECT_EQ(lines[i].at("masked_instances").get<double>(), golden_value("instance_filter", "masked_instances", i));
}

TEST(Trajectory, TwoVirtualRanksDivideEachByItsOwnCount) {
  TempDir temp;
  const fs::path config = write_trajectory_config(temp, {.tokens = training_golden("tokens_periodic.npy")});
  const Sets filter = {"recipe.data.filter.count=32", "recipe.loss.divisor=olmo-core"};
  Sets ranks = filter;
  ranks.push_back("recipe.loss.divisor_ranks=2");
  const std::vector<Json> lines = train_trajectory(config, temp / "two", ranks);
  expect_exact(lines, temp / "two", "two_ranks");
  expect_close(lines, "two_ranks", "two ranks vs float64");
  const Json& other = golden_run("two_ranks").at("rank1");
  for (size_t i = 0; i < lines.size(); ++i) {
    const Json& own = lines[i].at("ranks");
    EXPECT_EQ(own.at("masked_instances")[0].get<double>(), golden_value("two_ranks", "masked_instances", i)) << i;
    EXPECT_EQ(own.at("masked_labels")[1].get<double>(), parse_hex(other.at("masked_labels")[i])) << i;
    EXPECT_EQ(own.at("masked_instances")[1].get<double>(), parse_hex(other.at("masked_instances")[i])) << i;
    EXPECT_NEAR(own.at("z_loss")[1].get<double>(), parse_hex(other.at("z_loss")[i]), kZLimit) << i;
    EXPECT_NEAR((own.at("loss")[0].get<double>() + own.at("loss")[1].get<double>()) / 2, lines[i].at("loss").get<double>(), 1e-6) << i;
  }
  // The control: one divisor for the whole batch is another run, the one that the reference gets so.
  const std::vector<Json> one = train_trajectory(config, temp / "one", filter);
  EXPECT_GT(drift_from(one, "two_ranks", "float64").ce, 1000 * kLossLimit);
  EXPECT_TRUE(drift_from(one, "two_ranks", "float64_global_divisor").within());
}

// The packed instances that OLMo-core used, written out as a file of 469 rows; a row that it never used is empty here.
RunFiles write_packed(const TempDir& temp) {
  const Tensors packed = [] {
    const checkpoint::TensorSource source = checkpoint::TensorSource::open(training_golden("packed_instances.safetensors"));
    Tensors tensors;
    const auto widen = [&]<class T>(const char* name, T) {
      const checkpoint::StoredTensor& stored = source.at(name);
      std::vector<T> raw(static_cast<size_t>(stored.elements()));
      source.read(stored, std::as_writable_bytes(std::span(raw)));
      tensors[name] = std::vector<float>(raw.begin(), raw.end());
    };
    widen("index", int32_t{});
    widen("input_ids", int32_t{});
    widen("label_mask", uint8_t{});
    return tensors;
  }();
  std::vector<uint16_t> tokens(469 * 64, 0);
  std::string mask(469 * 64, '\0');
  for (size_t i = 0; i < packed.at("index").size(); ++i) {
    const auto row = static_cast<size_t>(packed.at("index")[i]);
    for (size_t j = 0; j < 64; ++j) {
      tokens[row * 64 + j] = static_cast<uint16_t>(packed.at("input_ids")[i * 64 + j]);
      mask[row * 64 + j] = static_cast<char>(packed.at("label_mask")[i * 64 + j]);
    }
  }
  const RunFiles files{.tokens = (temp / "packed.npy").string(), .label_mask = (temp / "packed-mask.npy").string()};
  write_file_atomic(files.tokens, std::string(reinterpret_cast<const char*>(tokens.data()), tokens.size() * 2));
  write_file_atomic(files.label_mask, mask);
  return files;
}

TEST(Trajectory, PackedDocumentsSeeOnlyThemselves) {
  TempDir temp;
  const fs::path config = write_trajectory_config(temp, write_packed(temp));
  const std::vector<Json> lines = train_trajectory(config, temp / "run", {"recipe.data.documents=eos"});
  expect_exact(lines, temp / "run", "packed");
  expect_close(lines, "packed", "packed vs float64");
  const std::vector<Json> open = train_trajectory(config, temp / "open", {}, 3);
  EXPECT_GT(drift_from(open, "packed", "float64").ce, 10 * kLossLimit);  // the control: without the masks
}

// One NaN in one gradient at step 20. Ours leaves the step out and forgets it; OLMo-core's weights would be NaN from here on.
TEST(Trajectory, ANanGradientCostsOneStep) {
  for (const auto& [name, window] : {std::pair{"nan_ours", "16"}, std::pair{"nan_ours_unprotected", "128"}}) {
    TempDir temp;
    const fs::path config = write_trajectory_config(temp), run = temp / "run";
    const std::string fault = "grad:model.layers.1.mlp.down_proj.weight[3,5]=nan@20";
    const dz::test::Outcome outcome =
        dz::test::deltazero(fmt::format("train '{}' --dir '{}' --set recipe.optimizer.skip_step.window={}", config.string(), run.string(), window),
                            "DZ_FAULT='" + fault + "'");
    ASSERT_EQ(outcome.code, 0) << outcome.text;
    EXPECT_NE(outcome.text.find("fault   " + fault), std::string::npos) << outcome.text;
    const std::vector<Json> lines = metrics(run);
    expect_exact(lines, run, name);
    expect_close(lines, name, std::string(name) + " vs float64");
    EXPECT_EQ(lines[19].at("fault"), fault);
    EXPECT_FALSE(lines[18].contains("fault"));
    EXPECT_EQ(Json::parse(read_file(run / "environment.json")).at("fault"), fault);
    EXPECT_NE(read_file(run / "starts.jsonl").find(fault), std::string::npos);
  }
}

TEST(Trajectory, AFiniteSpikeIsSkippedByTheWindow) {
  TempDir temp;
  const fs::path config = write_trajectory_config(temp), run = temp / "run";
  ASSERT_EQ(::setenv("DZ_FAULT", "grad:*=x64@20", 1), 0);
  const std::vector<Json> lines = train_trajectory(config, run, {"recipe.optimizer.skip_step.window=16"});
  ::unsetenv("DZ_FAULT");
  expect_exact(lines, run, "spike");
  expect_close(lines, "spike", "spike vs float64");
}

// As OLMo-core's stage 2: weights and moments of the end of another run, its Adam step kept or not, everything else anew.
TEST(Trajectory, AStageStartsFromWeightsAndMomentsOfAnother) {
  TempDir temp;
  const fs::path config = write_trajectory_config(temp);
  const Sets stage = {"recipe.steps=20",
                      "recipe.init=" + training_golden("step60_param.safetensors"),
                      "recipe.init_moments.exp_avg=" + training_golden("step60_exp_avg.safetensors"),
                      "recipe.init_moments.exp_avg_sq=" + training_golden("step60_exp_avg_sq.safetensors"),
                      "recipe.data.seed=1337",
                      "recipe.optimizer.lr=0.0005",
                      "recipe.schedule.name=linear",
                      "recipe.schedule.warmup=0",
                      "recipe.schedule.alpha_f=0"};
  Sets kept = stage;
  kept.push_back("recipe.optimizer.initial_step=60");
  const std::vector<Json> warm = train_trajectory(config, temp / "kept", kept), reset = train_trajectory(config, temp / "reset", stage);
  expect_exact(warm, temp / "kept", "warm_kept");
  expect_close(warm, "warm_kept", "warm_kept vs float64");
  expect_exact(reset, temp / "reset", "warm_reset");
  expect_close(reset, "warm_reset", "warm_reset vs float64");
  EXPECT_GT(drift_from(reset, "warm_kept", "float64").ce, 100 * kLossLimit);  // the control
}

// The control of all of these: one instance exchanged for another is seen at once, in the loss and in the batch digest.
TEST(Trajectory, OneSwappedInstanceIsSeen) {
  TempDir temp;
  std::string tokens = read_file(training_golden("tokens.npy"));
  std::swap_ranges(tokens.begin() + 192 * 128, tokens.begin() + 193 * 128, tokens.begin() + 300 * 128);  // 192 is in the first batch
  write_file_atomic(temp / "swapped.npy", tokens);
  const fs::path config = write_trajectory_config(temp, {.tokens = (temp / "swapped.npy").string()});
  const std::vector<Json> lines = train_trajectory(config, temp / "run", {}, 1);
  const Drift drift = drift_from(lines, "base", "float64");
  EXPECT_FALSE(drift.within()) << drift.ce;
  EXPECT_GT(drift.ce, 100 * kLossLimit);
}

}  // namespace
}  // namespace dz::train::test
