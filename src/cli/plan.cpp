// deltazero plan CONFIG: what a run will need and how fast it will be, before it starts.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/thread_pool.h"
#include "cli/bench_recipe.h"
#include "cli/byte_size.h"
#include "cli/cli.h"
#include "cli/corpus_options.h"
#include "kernels/peak.h"
#include "kernels/table.h"
#include "model/flops.h"
#include "train/config.h"
#include "train/memory_plan.h"
#include "train/step_estimate.h"

namespace dz::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string config, memory;
  std::vector<std::string> sets;
  int64_t ranks = 1;
  int threads = 0;
  bool sharded = false, no_time = false, json = false;
};

// One way to run: how much is computed again, and what that costs.
struct Way {
  std::string remat;
  train::MemoryPlan plan;
  double seconds = 0;  // 0: not measured
};

struct Plan {
  train::Recipe recipe;
  train::Topology topology;
  std::vector<Way> ways;  // the presets, the one of the configuration first when it is none of them
  int64_t memory = 0;     // 0: no limit
  double peak = 0;        // GFLOP/s
  std::optional<train::StepEstimate> estimate;
};

// A file, or the name of a size that `bench step` runs.
void read_config(const Options& options, Plan& plan) {
  const auto sizes = model::bench_sizes();
  const auto size = std::ranges::find(sizes, options.config, &model::BenchSize::name);
  if (size == sizes.end() || fs::exists(options.config)) {
    train::Config config = train::load_config(options.config, options.sets);
    plan.recipe = std::move(config.recipe);
    plan.topology = std::move(config.topology);
    return;
  }
  if (!options.sets.empty()) throw UsageError("--set changes a configuration file; " + options.config + " is a size of `deltazero bench step`");
  plan.recipe = bench_recipe(*size, "bf16");
  plan.topology.micro_batch = size->micro_batch;
}

Plan make_plan(const Options& options) {
  Plan plan;
  read_config(options, plan);
  if (!options.memory.empty()) {
    plan.memory = parse_byte_size(options.memory, "--memory");
    if (plan.memory < int64_t{1} << 20 && options.memory.find_first_not_of("0123456789") == std::string::npos) {
      throw UsageError(Complaint{"--memory", options.memory, "a unit, as in " + options.memory + "G", "a number alone would be bytes"});
    }
  }
  std::vector<std::string> remats;
  for (const std::string_view preset : model::remat_presets()) remats.emplace_back(preset);
  const std::string wanted = model::to_text(model::parse_remat(plan.topology.remat).value_or(model::Remat::kNone));
  if (std::ranges::find(remats, wanted) == remats.end()) remats.insert(remats.begin(), wanted);
  for (const std::string& remat : remats) {
    train::Topology topology = plan.topology;
    topology.remat = remat;
    plan.ways.push_back({.remat = remat, .plan = train::plan_memory(plan.recipe, topology, options.ranks, options.sharded)});
  }
  if (options.no_time) return plan;
  const int threads = options.threads > 0 ? options.threads : plan.topology.threads > 0 ? static_cast<int>(plan.topology.threads) : default_threads();
  ThreadPool pool(threads);
  plan.estimate = train::estimate_step(plan.recipe, plan.ways.front().plan, pool);
  plan.peak = kernels::peak_gflops(compute_dtype(plan.recipe.dtype), pool);
  for (Way& way : plan.ways) way.seconds = plan.estimate->seconds(model::parse_remat(way.remat).value());
  return plan;
}

// The fastest way that fits; presets keep less from one to the next, so the first.
const Way* chosen(const Plan& plan) {
  const Way* best = nullptr;
  for (const Way& way : plan.ways) {
    if (plan.memory > 0 && way.plan.bytes > plan.memory) continue;
    if (best == nullptr || way.seconds < best->seconds) best = &way;
  }
  return best;
}

double tokens(const Plan& plan) { return static_cast<double>(plan.recipe.batch * plan.recipe.data.sequence_length); }

Json lines_json(const std::vector<train::MemoryLine>& lines) {
  Json json = Json::object();
  for (const train::MemoryLine& line : lines) json[line.name] = line.bytes;
  return json;
}

void print_json(const Plan& plan, int64_t ranks) {
  const model::FlopCounts flops = model::flop_counts(plan.recipe.model, plan.recipe.data.sequence_length);
  const train::MemoryPlan& first = plan.ways.front().plan;
  Json json = {{"parameters", model::num_params(plan.recipe.model)},
               {"tokens_per_step", plan.recipe.batch * plan.recipe.data.sequence_length},
               {"ranks", ranks},
               {"micro_batches", first.micro_batches},
               {"gradient_copies", first.gradients},
               {"flops_per_token",
                {{"useful", flops.useful},
                 {"maxtext", flops.maxtext},
                 {"maxtext_windows", flops.maxtext_windows},
                 {"olmo_core", flops.olmo_core},
                 {"olmo_core_windows", flops.olmo_core_windows}}},
               {"state", lines_json(first.state)}};
  for (const Way& way : plan.ways) {
    Json entry = {{"remat", way.remat},
                  {"bytes", way.plan.bytes},
                  {"activation_bytes", way.plan.activation_bytes},
                  {"activations", lines_json(way.plan.activations)}};
    if (plan.estimate) entry["step_seconds"] = way.seconds;
    json["remat"].push_back(std::move(entry));
  }
  if (plan.estimate) {
    const train::StepEstimate& e = *plan.estimate;
    json["seconds"] = {{"forward", e.forward}, {"head", e.head}, {"backward", e.backward}, {"optimizer", e.optimizer}, {"merge", e.merge}};
    json["peak_gflops"] = plan.peak;
  }
  const Way* best = chosen(plan);
  json["chosen"] = best == nullptr ? Json(nullptr) : Json(best->remat);
  fmt::print("{}\n", json.dump());
}

void print_lines(const std::vector<train::MemoryLine>& lines) {
  for (const train::MemoryLine& line : lines) fmt::print("  {:24} {:>12}  {:>16} bytes\n", line.name, binary_size(line.bytes), line.bytes);
}

void print_text(const Plan& plan, int64_t ranks) {
  const train::Recipe& recipe = plan.recipe;
  const model::FlopCounts flops = model::flop_counts(recipe.model, recipe.data.sequence_length);
  const Way* best = chosen(plan);
  const Way& shown = best == nullptr ? plan.ways.back() : *best;
  fmt::print("model   {} parameters, {} instances x {} tokens a step, {} lanes, {}\n", model::num_params(recipe.model), recipe.batch,
             recipe.data.sequence_length, recipe.lanes, recipe.dtype);
  fmt::print("cut     {} rank{}, {} micro-batches of at most {} instances, {} gradient{}\n", ranks, ranks == 1 ? "" : "s (the busiest is shown)",
             shown.plan.micro_batches, shown.plan.instances, shown.plan.gradients, shown.plan.gradients == 1 ? "" : "s");
  fmt::print("work    {:.1f} MFLOP a token that count; as others count: MaxText {:.1f} (windows {:.1f}), OLMo-core {:.1f} (windows {:.1f})\n",
             1e-6 * flops.useful, 1e-6 * flops.maxtext, 1e-6 * flops.maxtext_windows, 1e-6 * flops.olmo_core, 1e-6 * flops.olmo_core_windows);
  fmt::print("memory  {} with remat {}\n", binary_size(shown.plan.bytes), shown.remat);
  print_lines(shown.plan.state);
  print_lines({{"activations", shown.plan.activation_bytes}});
  fmt::print("of the activations (some lie over others)\n");
  print_lines(shown.plan.activations);
  fmt::print("\n{:36} {:>12} {:>12} {:>14} {:>8}\n", "remat", "memory", "s / step", "tokens / s", "of peak");
  for (const Way& way : plan.ways) {
    const bool fits = plan.memory == 0 || way.plan.bytes <= plan.memory;
    fmt::print("{:36} {:>12}", way.remat, binary_size(way.plan.bytes));
    if (plan.estimate) {
      fmt::print(" {:>12.3f} {:>14.1f} {:>7.1f}%", way.seconds, tokens(plan) / way.seconds,
                 1e-7 * tokens(plan) * flops.useful / way.seconds / plan.peak / static_cast<double>(ranks));
    }
    fmt::print("{}\n", !fits ? "   does not fit" : &way == best ? "   <- topology.remat" : "");
  }
  if (plan.estimate && ranks > 1) fmt::print("time    of a rank's own work; what ranks wait for each other is not in it\n");
  if (best == nullptr) fmt::print("no preset fits {}: fewer instances at a time (topology.micro_batch) or more ranks\n", binary_size(plan.memory));
}

void run(const Options& options) {
  const Plan plan = make_plan(options);
  if (options.json) {
    print_json(plan, options.ranks);
  } else {
    print_text(plan, options.ranks);
  }
  if (chosen(plan) == nullptr) set_exit_code(static_cast<int>(ExitCode::kDifferent));
}

}  // namespace

void add_plan(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("plan", "memory by tensor, operations, and the time of a step, before a run starts");
  auto options = std::make_shared<Options>();
  verb->add_option("config", options->config, "configuration file, or a size of `bench step`")->required()->type_name("CONFIG");
  verb->add_option("--set", options->sets, "set one key of the configuration; repeatable")->type_name("SECTION.KEY=VALUE")->take_all()->expected(1);
  verb->add_option("--memory", options->memory, "what a rank has, as in 24G: the fastest preset that fits is chosen")->type_name("SIZE");
  verb->add_option("--ranks", options->ranks, "processes that share a step")->check(CLI::Range(int64_t{1}, int64_t{1} << 20))->capture_default_str();
  verb->add_flag("--sharded", options->sharded, "master weights and moments cut over the ranks, as topology.zero");
  verb->add_option("--threads", options->threads, "of a rank; default: topology.threads")->check(CLI::Range(1, 1024));
  verb->add_flag("--no-time", options->no_time, "no measurement: memory and operations only");
  verb->add_flag("--json", options->json, "one line of JSON, in bytes and seconds");
  verb->footer(
      "Exit code 1: no preset fits the memory. Time is measured on this machine at the recipe's shapes: seconds, for billions of parameters a "
      "minute.");
  verb->callback([options] { run(*options); });
}

}  // namespace dz::cli
