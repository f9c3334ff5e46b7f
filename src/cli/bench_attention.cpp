// deltazero bench attention: the attention kernels at the shapes of real models, as a share of what the machine can multiply.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/stopwatch.h"
#include "base/thread_pool.h"
#include "cli/bench.h"
#include "kernels/attention_sample.h"
#include "kernels/peak.h"
#include "kernels/table.h"
#include "model/bench_sizes.h"

namespace dz::cli {
namespace {

struct Row {
  std::string name;
  int64_t instances = 0, seq = 0, heads = 0, kv_heads = 0, head_dim = 0, window = 0;
};

// The attention layers of the sizes that speed is measured on by their micro batches, the same width with heads twice as wide, and the cost by
// length.
std::vector<Row> table_rows() {
  std::vector<Row> rows;
  for (const char* name : {"nano", "60m", "190m"}) {
    const model::BenchSize& size = model::bench_size(name, "bench attention");
    const model::ModelConfig& config = size.config;
    const Row full{size.name + ", full", size.micro_batch, size.seq_len, config.n_heads, config.n_kv_heads, config.head_dim, 0};
    rows.push_back(full);
    rows.back().name = size.name + ", sliding";
    rows.back().window = size.window;
    rows.push_back(full);
  }
  rows.insert(
      rows.end(),
      {{"wide head, sliding", 2, 1024, 6, 6, 128, 512}, {"wide head, full", 2, 1024, 6, 6, 128, 0}, {"grouped, sliding", 2, 1024, 12, 4, 64, 512}});
  for (int64_t k = 1; k <= 64; k *= 2) rows.push_back({fmt::format("length {}k", k), 1, k * 1024, 4, 4, 64, 512});
  return rows;
}

struct Options {
  Row one{.name = "asked", .instances = 2, .seq = 0, .heads = 12, .kv_heads = 0, .head_dim = 64, .window = 0};
  std::string dtype = "bf16";
  int threads = 1;
  double seconds = 0.3;
  bool json = false;
};

struct Result {
  double pairs = 0;
  double forward_s = 0, backward_s = 0;
  double forward_gflops = 0, backward_gflops = 0, gflops = 0;
  double peak = 0;
};

// Forward and backward in turn; the best round of each counts, and the raw peak is the mean of before and after.
template <class T>
Result measure(const Row& row, double seconds, ThreadPool& pool) {
  const kernels::AttentionShape shape{
      .instances = row.instances, .keys = row.seq, .heads = row.heads, .kv_heads = row.kv_heads, .head_dim = row.head_dim, .window = row.window};
  kernels::AttentionSample<T> sample(shape);
  // One thread by processor time; several by the clock, because a thread that waits for another uses none.
  const Stopwatch all;
  const auto now = [&] { return pool.threads() == 1 ? processor_seconds() : all.seconds(); };
  const DType dtype = dtype_of<T>();
  sample.forward(pool);
  sample.backward(pool);
  Result result{.pairs = static_cast<double>(kernels::visible_pairs(shape) * row.heads), .peak = kernels::peak_gflops(dtype, pool)};
  result.forward_s = result.backward_s = std::numeric_limits<double>::infinity();
  const Stopwatch measuring;
  do {
    const double begin = now();
    sample.forward(pool);
    const double middle = now();
    sample.backward(pool);
    result.forward_s = std::min(result.forward_s, middle - begin);
    result.backward_s = std::min(result.backward_s, now() - middle);
  } while (measuring.seconds() < seconds);
  result.peak = (result.peak + kernels::peak_gflops(dtype, pool)) / 2;
  const double work = result.pairs * static_cast<double>(row.head_dim) * 1e-9;
  result.forward_gflops = 4 * work / result.forward_s;
  result.backward_gflops = 8 * work / result.backward_s;
  result.gflops = 12 * work / (result.forward_s + result.backward_s);
  return result;
}

nlohmann::json record_of(const Row& row, const Result& result) {
  return {{"name", row.name},
          {"instances", row.instances},
          {"seq", row.seq},
          {"heads", row.heads},
          {"kv_heads", row.kv_heads},
          {"head_dim", row.head_dim},
          {"window", row.window},
          {"pairs", static_cast<int64_t>(result.pairs)},
          {"forward_s", result.forward_s},
          {"backward_s", result.backward_s},
          {"forward_gflops", result.forward_gflops},
          {"backward_gflops", result.backward_gflops},
          {"gflops", result.gflops},
          {"peak_gflops", result.peak},
          {"share", result.gflops / result.peak}};
}

void run(const Options& options) {
  std::vector<Row> rows;
  if (options.one.seq > 0) {
    rows.push_back(options.one);
    if (rows[0].kv_heads == 0) rows[0].kv_heads = rows[0].heads;
    if (rows[0].heads % rows[0].kv_heads != 0) {
      throw UsageError("bench attention: --heads " + std::to_string(rows[0].heads) + " is not a multiple of --kv-heads " +
                       std::to_string(rows[0].kv_heads));
    }
  } else {
    rows = table_rows();
  }
  ThreadPool pool(options.threads);
  const std::string isa(kernels::name_of(kernels::active().isa));
  nlohmann::json records = nlohmann::json::array();
  if (!options.json) {
    fmt::print("{}, {}, {} threads; GFLOP/s of visible pairs: 4 x head_dim a pair forward, 8 backward\n", isa, options.dtype, options.threads);
    fmt::print("{:<20}{:>14}{:>8}{:>6}{:>8}{:>12}{:>13}{:>9}{:>9}{:>9}{:>9}{:>7}\n", "", "shape", "heads", "dim", "window", "forward ms",
               "backward ms", "forward", "backward", "both", "raw peak", "share");
  }
  for (const Row& row : rows) {
    const Result result = options.dtype == "bf16" ? measure<bf16>(row, options.seconds, pool) : measure<float>(row, options.seconds, pool);
    if (options.json) {
      records.push_back(record_of(row, result));
      continue;
    }
    fmt::print("{:<20}{:>14}{:>8}{:>6}{:>8}{:>12.2f}{:>13.2f}{:>9.1f}{:>9.1f}{:>9.1f}{:>9.1f}{:>6.1f}%\n", row.name,
               fmt::format("{} x {}", row.instances, row.seq),
               row.heads == row.kv_heads ? fmt::format("{}", row.heads) : fmt::format("{}/{}", row.heads, row.kv_heads), row.head_dim,
               row.window == 0 ? "full" : fmt::format("{}", row.window), 1e3 * result.forward_s, 1e3 * result.backward_s, result.forward_gflops,
               result.backward_gflops, result.gflops, result.peak, 100 * result.gflops / result.peak);
  }
  if (options.json) {
    const nlohmann::json record = {{"unit", "GFLOP/s"}, {"isa", isa}, {"dtype", options.dtype}, {"threads", options.threads}, {"rows", records}};
    fmt::print("{}\n", record.dump());
  }
}

}  // namespace

void add_bench_attention(CLI::App& bench) {
  CLI::App* part = bench.add_subcommand("attention", "attention forward and backward, as a share of the raw peak");
  auto options = std::make_shared<Options>();
  const auto size = [&](const char* name, int64_t& value, int64_t low, int64_t high, const char* text) {
    return part->add_option(name, value, text)->check(CLI::Range(low, high));
  };
  CLI::Option* seq = size("--seq", options->one.seq, 1, 1 << 20, "one shape of this length; without it a table of shapes");
  size("--window", options->one.window, 0, 1 << 20, "keys that a query sees; 0: all")->capture_default_str()->needs(seq);
  size("--head-dim", options->one.head_dim, 1, kernels::kMaxHeadDim, "width of a head")->capture_default_str()->needs(seq);
  size("--heads", options->one.heads, 1, 1024, "query heads")->capture_default_str()->needs(seq);
  size("--kv-heads", options->one.kv_heads, 1, 1024, "key/value heads; as many as query heads unless given")->needs(seq);
  size("--instances", options->one.instances, 1, 4096, "sequences")->capture_default_str()->needs(seq);
  part->add_option("--dtype", options->dtype, "bf16 or fp32")->check(CLI::IsMember({"bf16", "fp32"}))->capture_default_str();
  part->add_option("--threads", options->threads, "threads")->check(CLI::Range(1, 1024))->capture_default_str();
  part->add_option("--seconds", options->seconds, "how long a shape is measured")->check(seconds_in_an_hour)->capture_default_str();
  part->add_flag("--json", options->json, "one line of JSON");
  part->footer("DZ_ISA chooses the instruction set. The best round counts. Close other programs before comparing.");
  part->callback([options] { run(*options); });
}

}  // namespace dz::cli
