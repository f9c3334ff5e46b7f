// deltazero train CONFIG.yaml
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/error.h"
#include "base/trace.h"
#include "cli/cli.h"
#include "cli/landmark.h"
#include "train/trainer.h"

namespace dz::cli {
namespace {

struct Options {
  std::string config, dir, fork, profile;
  std::vector<std::string> sets;
  int64_t stop_after = -1;
  bool fresh = false, override_data = false, help_config = false;
};

void run_train(const Options& options) {
  if (options.help_config) {
    fmt::print("{}", train::config_help());
    return;
  }
  if (options.config.empty())
    throw UsageError("train: expected a config file, as in deltazero train configs/quickstart.yaml (--help-config lists its keys)");
  train::TrainOptions train{.config = train::load_config(options.config, options.sets),
                            .stop_after = options.stop_after,
                            .fresh = options.fresh,
                            .fork = options.fork,
                            .override_data = options.override_data};
  if (!options.dir.empty()) train.config.run.dir = options.dir;
  if (train.config.run.dir.empty()) {
    throw ConfigError(
        Complaint{.where = options.config + ": run.dir", .found = "nothing", .expected = "the run directory", .hint = "or give it as --dir RUN"});
  }
  if (!options.fork.empty() && !fs::exists(fs::path(options.fork) / "manifest.json")) {
    throw InputError(
        Complaint{.where = "--fork " + options.fork, .found = "no checkpoint", .expected = "one, as in RUN/checkpoints/step-40", .hint = ""});
  }
  if (!options.profile.empty()) Trace::start();
  if (train::train(std::move(train), write_landmark) == train::Outcome::kStoppedBySignal) set_exit_code(static_cast<int>(ExitCode::kTryAgain));
  if (!options.profile.empty()) {
    Trace::stop();
    Trace::write(options.profile);
  }
}

}  // namespace

void add_train(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("train", "train a model; continues when the run has a checkpoint");
  verb->add_option("config", options->config, "configuration file (recipe, topology, run)")->type_name("CONFIG.yaml");
  verb->add_option("--dir", options->dir, "run directory, in place of run.dir")->type_name("RUN");
  verb->add_option("--set", options->sets, "set one key of the configuration; repeatable")->type_name("SECTION.KEY=VALUE")->take_all()->expected(1);
  verb->add_option("--stop-after", options->stop_after, "stop after this step of the whole run: save, exit 0; the schedule stays")
      ->type_name("STEP")
      ->check(CLI::Range(int64_t{0}, int64_t{1000000000000000}));
  CLI::Option* fresh = verb->add_flag("--fresh", options->fresh, "start anew; an old run in the directory is moved to RUN.old-K");
  verb->add_option("--fork", options->fork, "start a new run from this checkpoint under a changed recipe")->type_name("CHECKPOINT")->excludes(fresh);
  verb->add_flag("--override", options->override_data, "resume with other data: skips the identity check of the data, and nothing else");
  verb->add_option("--profile", options->profile, "write a Chrome trace of this process: kernels, phases, threads")->type_name("TRACE.json");
  verb->add_flag("--help-config", options->help_config, "list every key of a configuration with its default");
  verb->callback([options] { run_train(*options); });
}

}  // namespace dz::cli
