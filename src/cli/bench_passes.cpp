// deltazero bench passes: the ops of a training step that memory bounds, beside the bandwidth of a copy on this machine.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/stopwatch.h"
#include "base/thread_pool.h"
#include "cli/bench.h"
#include "cli/corpus_options.h"
#include "kernels/op_cases.h"
#include "kernels/peak.h"
#include "kernels/table.h"
#include "model/bench_sizes.h"

namespace dz::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string model = "nano";
  std::string dtype = "bf16";
  std::string only;
  int threads = default_threads();
  int64_t megabytes = 256;
  double seconds = 0.2;
  bool json = false;
};

// What a core has in its L2 beside nothing else: half a megabyte is a quarter or a half of it on the CPUs that matter.
constexpr double kCachedBytes = 512 << 10;

struct Result {
  double bytes = 0;    // of one run, read and written once
  int64_t copies = 0;  // that take turns
  double seconds = 0;  // of one run
  double gbps = 0, cached_gbps = 0;
  double copy_gbps = 0;
};

kernels::PassShape shape_of(const model::BenchSize& size) {
  const model::ModelConfig& config = size.config;
  return {.rows = size.rows(),
          .loss_rows = size.seq_len,
          .seq = size.seq_len,
          .width = config.d_model,
          .heads = config.n_heads,
          .head_dim = config.head_dim,
          .d_ff = config.d_ff,
          .vocab = config.vocab_size,
          .state = config.d_model * config.d_ff};
}

// Seconds of one run on buffers that have left the caches: the copies take turns, the fastest round counts.
double cold_seconds(const kernels::OpCase& one, int64_t copies, double seconds, ThreadPool& pool) {
  std::vector<kernels::PreparedCase> prepared;
  for (int64_t i = 0; i < copies; ++i) prepared.push_back(one.prepare(kernels::OpFault::kNone));
  double best = std::numeric_limits<double>::infinity();
  const Stopwatch measuring;
  // One thread by processor time; several by the clock, because a thread that waits for another uses none.
  const auto now = [&] { return pool.threads() == 1 ? processor_seconds() : measuring.seconds(); };
  do {
    const double begin = now();
    for (const kernels::PreparedCase& copy : prepared) copy.run_on(pool);
    best = std::min(best, (now() - begin) / static_cast<double>(copies));
  } while (measuring.seconds() < seconds);
  return best;
}

// GB/s of one thread on data that stays in its caches: what the arithmetic allows.
double cached_gbps(const kernels::OpCase& one, double seconds) {
  ThreadPool pool(1);
  const kernels::PreparedCase prepared = one.prepare(kernels::OpFault::kNone);
  double best = std::numeric_limits<double>::infinity();
  const Stopwatch measuring;
  do {
    constexpr int kRuns = 8;
    const double begin = processor_seconds();
    for (int run = 0; run < kRuns; ++run) prepared.run_on(pool);
    best = std::min(best, (processor_seconds() - begin) / kRuns);
  } while (measuring.seconds() < seconds);
  return 1e-9 * one.bytes / best;
}

Result measure(const kernels::OpCase& one, const kernels::OpCase& small, const Options& options, ThreadPool& pool) {
  Result result{.bytes = one.bytes};
  result.copies = std::max<int64_t>(1, static_cast<int64_t>(1e6 * static_cast<double>(options.megabytes) / one.bytes));
  result.seconds = cold_seconds(one, result.copies, options.seconds, pool);
  result.gbps = 1e-9 * one.bytes / result.seconds;
  result.cached_gbps = cached_gbps(small, options.seconds / 10);
  return result;
}

void run(const Options& options) {
  const model::BenchSize& size = model::bench_size(options.model, "bench passes --model");
  const kernels::PassShape shape = shape_of(size);
  const DType dtype = compute_dtype(options.dtype);
  const std::vector<kernels::OpCase> cases = kernels::pass_cases(shape, dtype);
  const auto wanted = [&](const kernels::OpCase& one) { return one.name.find(options.only) != std::string::npos; };
  if (std::ranges::none_of(cases, wanted)) {
    std::string names;
    for (const kernels::OpCase& one : cases) names += (names.empty() ? "" : "; ") + one.name;
    throw UsageError(Complaint{"--only", options.only, "part of one of: " + names, ""});
  }
  ThreadPool pool(options.threads);
  Json rows = Json::array();
  if (!options.json) {
    fmt::print("{}  {}  {}  {} threads; GB/s read and written, each tensor once\n", size.name, options.dtype, kernels::name_of(kernels::active().isa),
               options.threads);
    fmt::print("{:<48}{:>10}{:>9}{:>9}{:>8}{:>14}\n", "", "MB a run", "GB/s", "copy", "share", "one in cache");
  }
  constexpr double kCopyMilliseconds = 40;
  double before = kernels::copy_gbps(pool, kCopyMilliseconds);
  for (size_t i = 0; i < cases.size(); ++i) {
    const kernels::OpCase& one = cases[i];
    if (!wanted(one)) continue;
    const double factor = std::min(1.0, kCachedBytes / one.bytes);
    Result result = measure(one, kernels::pass_cases(shape.scaled(factor), dtype)[i], options, pool);
    const double after = kernels::copy_gbps(pool, kCopyMilliseconds);
    result.copy_gbps = 0.5 * (before + after);
    before = after;
    if (options.json) {
      rows.push_back({{"op", one.op},
                      {"name", one.name},
                      {"bytes", result.bytes},
                      {"copies", result.copies},
                      {"seconds", result.seconds},
                      {"gbps", result.gbps},
                      {"copy_gbps", result.copy_gbps},
                      {"share", result.gbps / result.copy_gbps},
                      {"cached_gbps", result.cached_gbps}});
    } else {
      fmt::print("{:<48}{:>10.1f}{:>9.1f}{:>9.1f}{:>7.0f}%{:>14.1f}\n", one.name, 1e-6 * one.bytes, result.gbps, result.copy_gbps,
                 100 * result.gbps / result.copy_gbps, result.cached_gbps);
    }
  }
  if (options.json) {
    const Json record = {{"model", size.name},         {"unit", "GB/s"}, {"isa", kernels::name_of(kernels::active().isa)}, {"dtype", options.dtype},
                         {"threads", options.threads}, {"rows", rows}};
    fmt::print("{}\n", record.dump());
  }
}

}  // namespace

void add_bench_passes(CLI::App& bench) {
  CLI::App* part = bench.add_subcommand("passes", "the ops that memory bounds, beside the bandwidth of a copy");
  auto options = std::make_shared<Options>();
  part->add_option("--model", options->model, "nano, 60m, 190m, 190m-2048, smoke")->capture_default_str();
  part->add_option("--dtype", options->dtype, "bf16 or fp32: of the compute")->check(CLI::IsMember({"bf16", "fp32"}))->capture_default_str();
  part->add_option("--threads", options->threads, "threads")->check(CLI::Range(1, 1024))->capture_default_str();
  part->add_option("--only", options->only, "ops whose name holds this")->type_name("TEXT");
  part->add_option("--megabytes", options->megabytes, "copies of the buffers that take turns, so that none is in a cache")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  part->add_option("--seconds", options->seconds, "how long an op is measured, whole rounds")->check(seconds_in_an_hour)->capture_default_str();
  part->add_flag("--json", options->json, "one line of JSON");
  part->footer("DZ_ISA chooses the instruction set. The best round counts. Close other programs before comparing.");
  part->callback([options] { run(*options); });
}

}  // namespace dz::cli
