// deltazero bench step: whole training steps on synthetic text, beside the raw peak of this machine.
#include <fmt/format.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "base/error.h"
#include "base/stopwatch.h"
#include "base/thread_pool.h"
#include "base/trace.h"
#include "checkpoint/digest.h"
#include "cli/bench.h"
#include "cli/bench_profile.h"
#include "cli/bench_recipe.h"
#include "cli/byte_size.h"
#include "cli/corpus_options.h"
#include "kernels/loss.h"
#include "kernels/peak.h"
#include "kernels/table.h"
#include "model/bench_sizes.h"
#include "model/init.h"
#include "train/step.h"

namespace dz::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string model = "nano";
  std::string dtype = "bf16";
  std::string remat = "none";
  std::string profile;
  int threads = default_threads();
  int64_t steps = 10, warmup = 3;
  int64_t lanes = 8;
  std::vector<std::string> sets;
  bool certificates = false;
  bool json = false;
};

double seconds_since_process_start() {
  // Field 22 of /proc/self/stat: ticks between boot and the start; the name in field 2 may hold spaces.
  std::ifstream file("/proc/self/stat");
  std::string stat((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::istringstream fields(stat.substr(stat.rfind(')') + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) - std::stod(field) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

int64_t peak_rss_mb() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

// Text that can be learnt to a loss of ln 8: the next token is (5 * token + 1 + noise) mod vocabulary, noise in 0..7.
class SyntheticText {
 public:
  explicit SyntheticText(int64_t vocab) : vocab_(vocab) {}

  data::Batch batch(int64_t step, int64_t instances, int64_t seq) {
    data::Batch batch{.step = step, .instances = instances, .sequence_length = seq};
    for (int64_t i = 0; i < instances; ++i) {
      auto token = static_cast<int64_t>(random_() % static_cast<uint64_t>(vocab_));
      for (int64_t t = 0; t < seq; ++t) {
        batch.tokens.push_back(static_cast<int32_t>(token));
        token = (5 * token + 1 + static_cast<int64_t>(random_() % 8)) % vocab_;
        batch.targets.push_back(static_cast<int32_t>(token));
      }
      batch.ids.push_back((step - 1) * instances + i);
      batch.row_labels.push_back(seq);
      batch.filtered.push_back(0);
    }
    batch.labels = instances * seq;
    return batch;
  }

 private:
  const int64_t vocab_;
  std::mt19937_64 random_{1};
};

struct Run {
  std::vector<double> seconds;
  std::vector<train::PhaseSeconds> phases;
  double startup = 0;
  float loss = 0;
  int64_t activation_bytes = 0, gradient_bytes = 0;
};

void digest(const train::TrainState& state, ThreadPool& pool) {
  checkpoint::digest_tensors(state.parameters.views(), pool);
  checkpoint::digest_tensors(train::moment_views(state), pool);
}

Run run_steps(const train::Recipe& recipe, const Options& options, int64_t micro_batch, ThreadPool& pool) {
  train::TrainState state(recipe);
  model::init_parameters(model::InitSettings{}, recipe.model, state.parameters, pool);
  train::Topology topology;
  topology.micro_batch = micro_batch;
  topology.remat = options.remat;
  train::Stepper stepper(recipe, topology, pool);
  SyntheticText text(recipe.model.vocab_size);
  Run run;
  for (int64_t step = 1; step <= recipe.steps; ++step) {
    const data::Batch batch = text.batch(step, recipe.batch, recipe.data.sequence_length);
    if (step == options.warmup + 1 && !options.profile.empty()) Trace::start();
    Stopwatch watch;
    train::StepReport report = stepper.step(state, batch);
    if (options.certificates) {
      const Stopwatch digesting;
      digest(state, pool);
      report.phases.digest = digesting.seconds();
    }
    const double seconds = watch.lap();
    if (step == 1) run.startup = seconds_since_process_start();
    run.loss = report.loss;
    if (step <= options.warmup) continue;
    run.seconds.push_back(seconds);
    run.phases.push_back(report.phases);
  }
  Trace::stop();
  run.activation_bytes = stepper.activation_bytes();
  run.gradient_bytes = stepper.gradient_bytes();
  return run;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

double round_to(double value, int digits) { return std::stod(fmt::format("{:.{}f}", value, digits)); }

void run(const Options& options) {
  const model::BenchSize size = changed_size(options.model, options.sets);
  train::Recipe recipe = bench_recipe(size, options.dtype);
  recipe.lanes = options.lanes;
  recipe.steps = options.warmup + options.steps;
  if (!model::parse_remat(options.remat)) {
    throw UsageError(Complaint{.where = "--remat", .found = options.remat, .expected = model::remat_choices(), .hint = "see docs/verbs/plan.md"});
  }
  ThreadPool pool(options.threads);
  const DType dtype = compute_dtype(options.dtype);
  const double before = kernels::peak_gflops(dtype, pool);
  const Run run = run_steps(recipe, options, size.micro_batch, pool);
  const double after = kernels::peak_gflops(dtype, pool);

  std::vector<double> rates;
  const auto tokens = static_cast<double>(recipe.batch * recipe.data.sequence_length);
  for (const double seconds : run.seconds) rates.push_back(tokens / seconds);
  const double rate = median(rates), flops = model::flops_per_token(recipe.model, recipe.data.sequence_length), gflops = 1e-9 * rate * flops;
  const auto phase_ms = [&](double train::PhaseSeconds::*phase) {
    std::vector<double> values;
    for (const train::PhaseSeconds& phases : run.phases) values.push_back(1e3 * (phases.*phase));
    return round_to(median(values), 1);
  };
  Json line = {{"peer", "deltazero"}, {"model", options.model}, {"dtype", options.dtype}, {"threads", options.threads}};
  line["tokens_per_s"] = round_to(rate, 1);
  line["tokens_per_s_min"] = round_to(std::ranges::min(rates), 1);
  line["tokens_per_s_max"] = round_to(std::ranges::max(rates), 1);
  line["gflops"] = round_to(gflops, 1);
  line["mflop_per_token"] = round_to(1e-6 * flops, 2);
  line["parameters"] = model::num_params(recipe.model);
  line["step_ms"] = round_to(1e3 * median(run.seconds), 1);
  line["forward_ms"] = phase_ms(&train::PhaseSeconds::forward);
  line["head_ms"] = phase_ms(&train::PhaseSeconds::head);
  line["backward_ms"] = phase_ms(&train::PhaseSeconds::backward);
  line["optimizer_ms"] = phase_ms(&train::PhaseSeconds::optimizer);
  if (options.certificates) line["digest_ms"] = phase_ms(&train::PhaseSeconds::digest);
  line["startup_s"] = round_to(run.startup, 2);
  line["final_loss"] = round_to(static_cast<double>(run.loss), 4);
  line["steps"] = options.steps;
  line["tokens_per_step"] = recipe.batch * recipe.data.sequence_length;
  line["seq_len"] = recipe.data.sequence_length;
  line["micro_batch"] = std::min(size.micro_batch, recipe.batch);
  line["lanes"] = recipe.lanes;
  line["remat"] = options.remat;
  if (!options.sets.empty()) line["set"] = options.sets;
  line["peak_rss_mb"] = peak_rss_mb();
  line["activation_bytes"] = run.activation_bytes;
  line["gradient_bytes"] = run.gradient_bytes;
  line["isa"] = kernels::name_of(kernels::active().isa);
  line["peak_gflops"] = {round_to(before, 0), round_to(after, 0)};
  line["share_of_peak"] = round_to(gflops / (0.5 * (before + after)), 3);
  if (!options.profile.empty()) Trace::write(options.profile);
  if (options.json) {
    fmt::print("{}\n", line.dump());
    return;
  }
  fmt::print("{}  {}  {}  {} threads  peak {:.0f}, {:.0f} GFLOP/s\n", options.model, options.dtype, line["isa"].get<std::string>(), options.threads,
             before, after);
  fmt::print("speed   {:.1f} tokens/s ({:.1f} to {:.1f}), {:.1f} GFLOP/s, {:.1f}% of the raw peak\n", rate, std::ranges::min(rates),
             std::ranges::max(rates), gflops, 100 * line["share_of_peak"].get<double>());
  fmt::print("step    {} ms: forward {}, head {}, backward {}, optimizer {}\n", line["step_ms"].get<double>(), line["forward_ms"].get<double>(),
             line["head_ms"].get<double>(), line["backward_ms"].get<double>(), line["optimizer_ms"].get<double>());
  fmt::print("memory  {} MiB at most ({} activations, {} gradients); first step after {:.2f} s; loss {:.4f}\n", peak_rss_mb(),
             binary_size(run.activation_bytes), binary_size(run.gradient_bytes), run.startup, run.loss);
  if (options.profile.empty()) return;
  print_profile("where the time went");
  fmt::print("trace   {} (open it in chrome://tracing or ui.perfetto.dev)\n", options.profile);
}

}  // namespace

void add_bench_step(CLI::App& bench) {
  CLI::App* part = bench.add_subcommand("step", "whole training steps on synthetic text, beside the raw peak");
  auto options = std::make_shared<Options>();
  part->add_option("--model", options->model, "nano, 60m, 190m, 190m-2048, smoke")->capture_default_str();
  part->add_option("--dtype", options->dtype, "of the compute; weights and moments are fp32")
      ->check(CLI::IsMember({"bf16", "fp32"}))
      ->capture_default_str();
  part->add_option("--threads", options->threads, "threads")->check(CLI::Range(1, 1024))->capture_default_str();
  part->add_option("--steps", options->steps, "timed steps")->check(CLI::Range(1, 100000))->capture_default_str();
  part->add_option("--warmup", options->warmup, "steps before them")->check(CLI::Range(0, 1000))->capture_default_str();
  part->add_option("--set", options->sets, "change the size, as in head_dim=128; repeatable")->type_name("KEY=NUMBER")->take_all()->expected(1);
  part->add_option_function<int64_t>(
          "--tokens-per-step", [options](int64_t n) { options->sets.push_back(fmt::format("tokens_per_step={}", n)); }, "default: the size's")
      ->type_name("N");
  part->add_option_function<int64_t>(
          "--micro-batch", [options](int64_t n) { options->sets.push_back(fmt::format("micro_batch={}", n)); },
          "instances at a time; default: the size's")
      ->type_name("N");
  part->add_option("--lanes", options->lanes, "of the gradient sum, a power of two")
      ->check(CLI::IsMember({1, 2, 4, 8, 16, 32, 64}))
      ->capture_default_str();
  part->add_option("--remat", options->remat, "as topology.remat")->capture_default_str();
  part->add_flag("--certificates", options->certificates, "digest the state after each step");
  part->add_option("--profile", options->profile, "print where the time went; write a Chrome trace of the timed steps to this file");
  part->add_flag("--json", options->json, "one line of JSON");
  part->footer("Median over the timed steps. Batches are made outside the timed part.");
  part->callback([options] { run(*options); });
}

}  // namespace dz::cli
