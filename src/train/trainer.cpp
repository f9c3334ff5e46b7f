#include "train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/stopwatch.h"
#include "data/ledger.h"
#include "kernels/cpu.h"
#include "kernels/peak.h"
#include "kernels/table.h"
#include "train/deviations.h"
#include "train/signals.h"
#include "train/start.h"
#include "train/token_warnings.h"

namespace dz::train {
namespace {

int thread_count(const Topology& topology) {
  if (topology.threads > 0) return static_cast<int>(topology.threads);
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

class Trainer {
 public:
  Trainer(TrainOptions options, const LandmarkHook& landmark)
      : options_(std::move(options)),
        landmark_(landmark),
        fault_(gradient_fault_of_environment(options_.config.recipe.model)),
        pool_(thread_count(options_.config.topology)),
        directory_(options_.config.run.dir, options_.fresh, notes_),
        data_(open_data(options_.config.recipe, {.cache = directory_.cache(), .override_data = options_.override_data}, pool_)),
        progress_(options_.config.recipe.steps, options_.config.run.log_every),
        state_(options_.config.recipe) {}

  Outcome run() {
    if (run_settings().verify_data) verify(data_, pool_);
    describe();
    start_ = start_run(options_, data_, directory_, state_, pool_, progress_);
    const int64_t last = options_.stop_after >= 0 ? std::min(options_.stop_after, recipe().steps) : recipe().steps;
    if (state_.step >= last && !start_.save_now) {
      progress_.note(fmt::format("nothing to do: step {} of {} is done", state_.step, last));
      return Outcome::kDone;
    }
    directory_.write_config(options_.config, environment());
    directory_.add_start(start_line());
    if (state_.step == 0 && fs::exists(directory_.metrics()) && fs::file_size(directory_.metrics()) > 0) {
      rename_durably(directory_.metrics(), directory_.path() / "metrics.jsonl.old");
      progress_.note("no checkpoint: the run starts again at step 1; its old lines are in metrics.jsonl.old");
    }
    MetricsLog metrics(directory_.metrics(), state_.step);
    if (metrics.removed_lines() > 0)
      progress_.note(fmt::format("metrics cut back to step {} ({} lines removed)", state_.step, metrics.removed_lines()));
    if (options_.override_data) set_old_ledger_aside();
    data::Ledger ledger(directory_.ledger(), data_.dataset->instances(), state_.step);
    if (ledger.last_step() < state_.step && !start_.forked())
      progress_.note(fmt::format("warning: the ledger ends at step {}: steps up to {} cannot be audited", ledger.last_step(), state_.step));
    ledger_ = &ledger;
    if (start_.save_now) save(std::nullopt);
    mark();
    return loop(metrics, last);
  }

 private:
  const Recipe& recipe() const { return options_.config.recipe; }
  const RunSettings& run_settings() const { return options_.config.run; }

  Outcome loop(MetricsLog& metrics, int64_t last) {
    Signals signals(run_settings().stop_on_signal);
    const Topology& topology = options_.config.topology;
    Stepper stepper(recipe(), topology, pool_);
    stepper.set_fault(fault_);
    data::Loader loader(data_.dataset, data_.order,
                        {.threads = static_cast<int>(topology.loader_threads),
                         .prefetch = static_cast<int>(topology.prefetch),
                         .intra_document = recipe().data.document_masks,
                         .change = batch_change(recipe(), data_.dataset->vocabulary())});
    double save_seconds = 0;
    while (state_.step < last) {
      const Stopwatch whole;
      const data::Batch batch = loader.take(state_.step + 1);
      const double data_seconds = whole.seconds();
      StepReport report = stepper.step(state_, batch);
      const bool stop = signals.stop_signal() != 0;
      const bool save_due = state_.step == last || stop || signals.take_save_request() || due(run_settings().checkpoint_every);
      if (save_due || due(run_settings().digest_every)) {
        const Stopwatch watch;
        report.digests = digests();
        report.phases.digest = watch.seconds();
      }
      report.seconds = whole.seconds() + save_seconds;
      report.phases.data = data_seconds;
      report.phases.save = save_seconds;
      report.mfu = static_cast<double>(report.tokens) * flops_per_token_ / report.seconds / peak_;
      metrics.append(report);
      ledger_->append({.step = batch.step, .sequence_length = batch.sequence_length, .ids = consumed(batch)});
      progress_.step(report);
      save_seconds = save_due ? save(report.digests) : 0;
      refuse_divergence(batch);
      mark();
      if (stop) {
        progress_.note(fmt::format("stopped by {} after step {}; run the same command to go on",
                                   signals.stop_signal() == SIGINT ? "SIGINT" : "SIGTERM", state_.step));
        return Outcome::kStoppedBySignal;
      }
    }
    return Outcome::kDone;
  }

  // Instance numbers of other data mean something else, so a ledger is of one data set.
  void set_old_ledger_aside() {
    const fs::path path = directory_.ledger();
    if (!fs::exists(path) || data::ledger_instances(path) == data_.dataset->instances()) return;
    const fs::path aside = path.parent_path() / fmt::format("consumed-to-step-{}.bin", state_.step);
    rename_durably(path, aside);
    progress_.note("warning: the data has another number of instances; the ledger so far is now " + aside.string());
  }

  // A split instance stands in the batch once for each of its rows.
  std::vector<int64_t> consumed(const data::Batch& batch) const {
    if (batch.sequence_length == 0 || recipe().data.warm_up.mode != "split" || recipe().data.warm_up.sequence_length.empty()) return batch.ids;
    const auto rows = static_cast<size_t>(recipe().data.sequence_length / batch.sequence_length);
    std::vector<int64_t> ids;
    for (size_t i = 0; i < batch.ids.size(); i += rows) ids.push_back(batch.ids[i]);
    return ids;
  }

  bool due(int64_t every) const { return every > 0 && state_.step % every == 0; }

  checkpoint::StateDigests digests() {
    const checkpoint::Snapshot now = snapshot(options_.config, data_, start_, state_);
    return {checkpoint::digest_tensors(now.parameters, pool_), checkpoint::digest_tensors(now.moments, pool_),
            checkpoint::digest_text(now.trainer_json)};
  }

  double save(const std::optional<checkpoint::StateDigests>& digests) {
    const Stopwatch watch;
    checkpoint::Snapshot snapshot = train::snapshot(options_.config, data_, start_, state_);
    snapshot.digests = digests;
    ledger_->sync();
    const checkpoint::Saved saved = checkpoint::save(directory_.checkpoints(), snapshot, run_settings().keep, pool_);
    for (const std::string& note : saved.notes) progress_.note("warning: " + note);
    const double seconds = watch.seconds();
    progress_.note(fmt::format("saved   step {} in {:.2f} s ({}B)", state_.step, seconds, short_count(static_cast<double>(saved.bytes))));
    return seconds;
  }

  // A landmark is due at the start, at each cadence and at the end; one that a kill left out is made up for after the resume.
  void mark() {
    const int64_t every = run_settings().landmarks.every;
    if (every == 0 || !landmark_ || (state_.step % every != 0 && state_.step != recipe().steps)) return;
    const fs::path directory = directory_.landmark(state_.step);
    if (!fs::exists(directory)) landmark_(options_.config, data_, state_, directory, pool_, progress_);
  }

  void refuse_divergence(const data::Batch& batch) const {
    const int64_t most = recipe().max_consecutive_skips;
    if (most == 0 || state_.guard.consecutive_skips() < most) return;
    throw DivergedError(
        fmt::format("training diverged: {} steps in a row were skipped, the last is {} (instances {}); the last checkpoint is whole; lower "
                    "recipe.optimizer.lr with --fork",
                    most, state_.step, fmt::join(batch.ids, ", ")));
  }

  std::string environment() const {
    nlohmann::ordered_json json{{"deltazero", DZ_VERSION},
                                {"numerics", recipe().numerics},
                                {"isa", kernels::name_of(kernels::active().isa)},
                                {"threads", pool_.threads()},
                                {"cpu", kernels::cpu_name()},
                                {"cores", std::thread::hardware_concurrency()},
                                {"compiler", __VERSION__},
                                {"peak_gflops", std::round(peak_ / 1e9)},
                                {"recipe", start_.identity.hash()}};
    if (fault_) json["fault"] = fault_->text;
    return json.dump(1) + "\n";
  }

  std::string start_line() const {
    nlohmann::ordered_json json{{"step", state_.step},
                                {"isa", kernels::name_of(kernels::active().isa)},
                                {"threads", pool_.threads()},
                                {"micro_batch", options_.config.topology.micro_batch},
                                {"loader_threads", options_.config.topology.loader_threads}};
    if (fault_) json["fault"] = fault_->text;
    return json.dump();
  }

  void describe() {
    const DType dtype = compute_dtype(recipe().dtype);
    peak_ = kernels::peak_gflops(dtype, pool_) * 1e9;
    flops_per_token_ = model::flops_per_token(recipe().model, recipe().data.sequence_length);
    const int64_t tokens = recipe().batch * recipe().data.sequence_length;
    progress_.note(fmt::format("deltazero {}  {}  {}  {} thread{}  peak {:.0f} GFLOP/s {}", DZ_VERSION, recipe().numerics,
                               kernels::name_of(kernels::active().isa), pool_.threads(), pool_.threads() == 1 ? "" : "s", peak_ / 1e9,
                               recipe().dtype));
    for (const std::string& note : notes_) progress_.note("        " + note);
    for (const std::string& note : data_.notes) progress_.note("data    " + note);
    const data::Vocabulary* vocabulary = data_.store ? &data_.store->vocabulary() : nullptr;
    for (const std::string& line : token_warnings(recipe(), vocabulary)) progress_.note("warning: " + line);
    const Identity identity = identify(recipe(), data_.dataset->digest(), "");
    progress_.note(fmt::format("run     {}   recipe {}   {} parameters   {} instances x {} = {} tokens a step   {} lanes, micro-batch {}",
                               directory_.path().string(), identity.hash().substr(0, 8),
                               short_count(static_cast<double>(model::num_params(recipe().model))), recipe().batch, recipe().data.sequence_length,
                               with_commas(tokens), recipe().lanes, std::min(options_.config.topology.micro_batch, recipe().batch)));
    // What is easily another than one thinks: how long the schedule is, and which tensors do not decay.
    for (const std::string& line : describe_update(recipe(), describe_schedule(recipe()))) progress_.note("recipe  " + line);
    for (const std::string& line : describe_deviations(recipe())) progress_.note("recipe  " + line);
    if (fault_) progress_.note("fault   " + fault_->text + " (DZ_FAULT, a switch for tests): this run is not what its recipe says");
    int64_t available = 0;
    for (const data::DatasetSource& source : data_.dataset->sources()) available += source.tokens;
    progress_.note(
        fmt::format("data    {} tokens from {} source{}   digest {}   {} tokens of tails dropped   {:.2f} epochs",
                    short_count(static_cast<double>(available)), data_.dataset->sources().size(), data_.dataset->sources().size() == 1 ? "" : "s",
                    data_.dataset->digest().substr(0, 8), with_commas(data_.dataset->dropped_tokens()),
                    static_cast<double>(recipe().steps) * static_cast<double>(recipe().batch) / static_cast<double>(data_.dataset->instances())));
  }

  TrainOptions options_;
  const LandmarkHook& landmark_;
  std::optional<GradientFault> fault_;
  std::vector<std::string> notes_;
  ThreadPool pool_;
  RunDirectory directory_;
  TrainingData data_;
  Progress progress_;
  TrainState state_;
  Start start_;
  data::Ledger* ledger_ = nullptr;  // of run()
  double peak_ = 1, flops_per_token_ = 0;
};

}  // namespace

Outcome train(TrainOptions options, const LandmarkHook& landmark) { return Trainer(std::move(options), landmark).run(); }

}  // namespace dz::train
