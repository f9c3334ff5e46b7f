#include "train/start.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "train/init.h"
#include "train/init_moments.h"

namespace dz::train {
namespace {

std::vector<checkpoint::TensorSlot> slots(model::Parameters& tensors, const std::function<std::string(std::string_view)>& rename) {
  std::vector<checkpoint::TensorSlot> slots;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const model::ParameterSpec& spec = tensors.specs()[i];
    slots.push_back({.name = rename(spec.name), .shape = spec.shape, .data = tensors.tensor(i).data()});
  }
  return slots;
}

void load_state(const checkpoint::Checkpoint& from, TrainState& state) {
  std::vector<checkpoint::TensorSlot> moments = slots(state.exp_avg, checkpoint::exp_avg_name);
  for (checkpoint::TensorSlot& slot : slots(state.exp_avg_sq, checkpoint::exp_avg_sq_name)) moments.push_back(std::move(slot));
  checkpoint::load(from, slots(state.parameters, [](std::string_view name) { return std::string(name); }), moments);
  restore_trainer(checkpoint::read_side_file(from, "trainer.json"), (from.path / "trainer.json").string(), state);
  if (state.step != from.step) {
    throw CheckpointError(Complaint{.where = (from.path / "trainer.json").string(),
                                    .found = fmt::format("step {}", state.step),
                                    .expected = fmt::format("{}, as the manifest says", from.step),
                                    .hint = ""});
  }
}

constexpr const char* kDataDigest = "recipe.data.digest";

std::string value_of(const Identity& identity, std::string_view key) {
  for (const auto& [name, value] : identity.fields) {
    if (name == key) return value;
  }
  return "";
}

void set_value(Identity& identity, std::string_view key, const std::string& value) {
  for (auto& field : identity.fields) {
    if (field.first == key) field.second = value;
  }
}

[[noreturn]] void refuse(const RunDirectory& directory, const checkpoint::Checkpoint& newest, const std::vector<std::string>& lines,
                         const std::vector<std::string>& changed_data) {
  std::string message = fmt::format("run {} was made with another recipe; resuming would change its meaning", directory.path().string());
  for (const std::string& line : lines) message += "\n  " + line;
  for (const std::string& line : changed_data) message += "\n    " + line;
  message += fmt::format("\n  to start a new run from this checkpoint: deltazero train ... --dir NEW --fork {}", newest.path.string());
  throw ConfigError(message);
}

void resume(const checkpoint::Checkpoint& newest, const TrainOptions& options, const TrainingData& data, const RunDirectory& directory, Start& start,
            TrainState& state, Progress& progress) {
  const std::string where = (newest.path / "identity.json").string();
  const Identity run = parse_identity(checkpoint::read_side_file(newest, "identity.json"), where);
  // Initial weights and moments are not read again: the run is past them. Their digests are taken over.
  const Recipe& recipe = options.config.recipe;
  for (const auto& field : run.fields) {
    const bool weights = field.first == kInitDigest && !is_init_method(recipe.init);
    const bool moments = field.first == kMomentsDigest && !recipe.init_moments.exp_avg.empty();
    if (weights || moments) start.identity.fields.push_back(field);
  }
  std::vector<std::string> changed_data;
  if (value_of(run, kDataDigest) != value_of(start.identity, kDataDigest) && newest.has("data.json"))
    changed_data = data_differences(checkpoint::read_side_file(newest, "data.json"), data, (newest.path / "data.json").string());
  Identity compared = run;
  if (options.override_data) set_value(compared, kDataDigest, value_of(start.identity, kDataDigest));
  const std::vector<std::string> lines = differences(compared, start.identity);
  if (!lines.empty()) refuse(directory, newest, lines, changed_data);
  if (value_of(run, kDataDigest) != value_of(start.identity, kDataDigest)) {
    progress.note("warning: --override: the data is not that of the run; its position is kept, and this is a run of two data sets from here on");
    for (const std::string& line : changed_data) progress.note("        " + line);
  }
  load_state(newest, state);
  if (newest.has("parent.json")) start.parent_json = checkpoint::read_side_file(newest, "parent.json");
  start.resumed = true;
  progress.note(fmt::format("resume  step {} ({})", state.step, newest.path.string()));
}

void fork(const TrainOptions& options, Start& start, TrainState& state, Progress& progress) {
  const checkpoint::Checkpoint parent = checkpoint::open_checkpoint(options.fork);
  const Identity old = parse_identity(checkpoint::read_side_file(parent, "identity.json"), (parent.path / "identity.json").string());
  load_state(parent, state);
  if (state.step >= options.config.recipe.steps) {
    throw ConfigError(Complaint{.where = "recipe.steps",
                                .found = std::to_string(options.config.recipe.steps),
                                .expected = fmt::format("more than {}, the step of {}", state.step, options.fork.string()),
                                .hint = "the step and the schedule go on in a fork"});
  }
  std::string changed;
  progress.note(fmt::format("fork    step {} of {}", state.step, options.fork.string()));
  for (const std::string& line : differences(old, start.identity)) progress.note("        " + line);
  start.parent_json =
      nlohmann::ordered_json{
          {"checkpoint", fs::absolute(options.fork).lexically_normal().string()},
          {"step", parent.step},
          {"recipe", old.hash()},
          {"digest", {{"parameters", parent.parameters.hex()}, {"moments", parent.moments.hex()}, {"trainer", parent.trainer.hex()}}}}
          .dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
      "\n";
  start.save_now = true;
}

}  // namespace

Start start_run(const TrainOptions& options, const TrainingData& data, const RunDirectory& directory, TrainState& state, ThreadPool& pool,
                Progress& progress) {
  const Recipe& recipe = options.config.recipe;
  for (const std::string& line : checkpoint::clean_leftovers(directory.checkpoints())) progress.note("        " + line);
  checkpoint::Newest newest = checkpoint::find_newest(directory.checkpoints());
  for (const checkpoint::Skipped& skipped : newest.skipped)
    progress.note(fmt::format("warning: {}/checkpoints/{} skipped: {}", directory.path().string(), skipped.name, skipped.why));

  Start start{.identity = identify(recipe, data.dataset->digest(), "")};
  if (newest.checkpoint && !options.fork.empty()) {
    throw ConfigError(directory.path().string() +
                      ": --fork starts a new run, but this one has a checkpoint already; leave out --fork to continue it, or choose another --dir");
  }
  if (newest.checkpoint) {
    resume(*newest.checkpoint, options, data, directory, start, state, progress);
  } else if (newest.count > 0) {
    throw CheckpointError(
        fmt::format("{}: none of {} checkpoints is complete (reasons above); repair one, or start anew with --fresh, which moves this run aside",
                    directory.checkpoints().string(), newest.count));
  } else if (!options.fork.empty()) {
    fork(options, start, state, progress);
  } else {
    const std::string init_digest = init_weights(recipe, state, pool, progress);
    start.identity = identify(recipe, data.dataset->digest(), init_digest, load_init_moments(recipe, state, pool, progress));
    state.adam_step = recipe.initial_step;
  }
  return start;
}

checkpoint::Snapshot snapshot(const Config& config, const TrainingData& data, const Start& start, const TrainState& state) {
  checkpoint::Snapshot snapshot{
      .step = state.step, .parameters = state.parameters.views(), .moments = moment_views(state), .trainer_json = trainer_json(state)};
  snapshot.side_files["recipe.yaml"] = recipe_yaml(config.recipe);
  snapshot.side_files["config.json"] = model::to_hf_json(config.recipe.model);
  snapshot.side_files["identity.json"] = to_json(start.identity);
  if (!start.parent_json.empty()) snapshot.side_files["parent.json"] = start.parent_json;
  if (!data.manifest_json.empty()) snapshot.side_files["data.json"] = data.manifest_json;
  if (!data.tokenizer_json.empty()) snapshot.side_files["tokenizer.json"] = data.tokenizer_json;
  return snapshot;
}

}  // namespace dz::train
