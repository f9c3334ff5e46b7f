// deltazero bench decode: generation with a cache of keys and values, beside what reading the weights takes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/stopwatch.h"
#include "base/thread_pool.h"
#include "base/trace.h"
#include "cli/bench.h"
#include "cli/bench_profile.h"
#include "cli/corpus_options.h"
#include "kernels/peak.h"
#include "kernels/table.h"
#include "model/bench_sizes.h"
#include "model/decode.h"
#include "model/init.h"
#include "model/weights.h"
#include "numerics/rope.h"

namespace dz::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string model = "190m", dtype = "bf16";
  int threads = default_threads();
  int64_t prompt = 1024, tokens = 64;
  bool json = false, profile = false;
};

struct Rates {
  double prefill = 0, decode = 0;  // tokens/s
};

int32_t token_at(int64_t i, const model::ModelConfig& config) { return static_cast<int32_t>(i * 7919 % config.vocab_size); }

template <class T>
Rates measure(const Options& options, const model::ModelConfig& config, ThreadPool& pool) {
  model::Parameters parameters(config);
  model::init_parameters(model::InitSettings{}, config, parameters, pool);
  model::Decoder<T> decoder(config, options.prompt + options.tokens, pool);
  decoder.set_weights(parameters);
  std::vector<int32_t> prompt;
  for (int64_t i = 0; i < options.prompt; ++i) prompt.push_back(token_at(i, config));
  Rates best;
  const auto phase = [&](const char* title, int round, auto&& body) {
    const bool listen = options.profile && round == 2;
    if (listen) Trace::start();
    Stopwatch watch;
    body();
    const double seconds = watch.lap();
    if (!listen) return seconds;
    Trace::stop();
    print_profile(title);
    return seconds;
  };
  for (int round = 0; round < 3; ++round) {
    decoder.reset();
    const double prefill = phase("prefill", round, [&] { decoder.append(prompt); });
    const double decode = phase("decoding", round, [&] {
      for (int64_t i = 0; i < options.tokens; ++i) {
        const int32_t token = token_at(i + round, config);
        decoder.append({&token, 1});
      }
    });
    best.prefill = std::max(best.prefill, static_cast<double>(options.prompt) / prefill);
    best.decode = std::max(best.decode, static_cast<double>(options.tokens) / decode);
  }
  return best;
}

// Forward only, the head for one row: two operations a parameter of the layers, four a visible pair and head dimension.
double prefill_flops(const model::ModelConfig& config, int64_t tokens) {
  const double head = 6.0 * static_cast<double>(config.vocab_size * config.d_model);
  return (model::flops_per_token(config, tokens) - head) / 3.0 + head / 3.0 / static_cast<double>(tokens);
}

void run(const Options& options) {
  const model::BenchSize& size = model::bench_size(options.model, "--model");
  ThreadPool pool(options.threads);
  const DType dtype = compute_dtype(options.dtype);
  const double peak = kernels::peak_gflops(dtype, pool), read = kernels::read_gbps(pool);
  const Rates rates = dtype == DType::kBF16 ? measure<bf16>(options, size.config, pool) : measure<float>(options, size.config, pool);
  const double read_after = kernels::read_gbps(pool), peak_after = kernels::peak_gflops(dtype, pool);
  const double bytes = static_cast<double>(model::matrix_elements(size.config)) * static_cast<double>(size_of(dtype)),
               gbps = 1e-9 * bytes * rates.decode;
  const double gflops = 1e-9 * rates.prefill * prefill_flops(size.config, options.prompt);
  const double read_share = gbps / (0.5 * (read + read_after)), peak_share = gflops / (0.5 * (peak + peak_after));
  if (options.json) {
    const Json line = {{"peer", "deltazero"},
                       {"model", options.model},
                       {"dtype", options.dtype},
                       {"threads", options.threads},
                       {"isa", kernels::name_of(kernels::active().isa)},
                       {"prompt", options.prompt},
                       {"tokens", options.tokens},
                       {"prefill_tokens_per_s", rates.prefill},
                       {"prefill_gflops", gflops},
                       {"prefill_share_of_peak", peak_share},
                       {"decode_tokens_per_s", rates.decode},
                       {"decode_weights_gb_per_s", gbps},
                       {"decode_share_of_read", read_share},
                       {"read_gb_per_s", {read, read_after}},
                       {"peak_gflops", {peak, peak_after}}};
    fmt::print("{}\n", line.dump());
    return;
  }
  fmt::print("{}  {}  {}  {} threads  batch 1\n", options.model, options.dtype, kernels::name_of(kernels::active().isa), options.threads);
  fmt::print("prefill {:.0f} tokens/s for {} tokens: {:.0f} GFLOP/s, {:.1f}% of the raw peak of {:.0f}\n", rates.prefill, options.prompt, gflops,
             100 * peak_share, 0.5 * (peak + peak_after));
  fmt::print("decode  {:.1f} tokens/s: {:.1f} GB/s of weights, {:.1f}% of the {:.1f} GB/s that this machine reads\n", rates.decode, gbps,
             100 * read_share, 0.5 * (read + read_after));
}

}  // namespace

void add_bench_decode(CLI::App& bench) {
  CLI::App* part = bench.add_subcommand("decode", "generation with a cache of keys and values, beside the read bandwidth");
  auto options = std::make_shared<Options>();
  part->add_option("--model", options->model, "nano, 60m, 190m, 190m-2048, smoke")->capture_default_str();
  part->add_option("--dtype", options->dtype, "bf16 or fp32")->check(CLI::IsMember({"bf16", "fp32"}))->capture_default_str();
  part->add_option("--threads", options->threads, "threads")->check(CLI::Range(1, 1024))->capture_default_str();
  part->add_option("--prompt", options->prompt, "tokens of the prompt, read at once")->check(CLI::Range(1, 1 << 20))->capture_default_str();
  part->add_option("--tokens", options->tokens, "tokens after it, one by one")->check(CLI::Range(1, 1 << 20))->capture_default_str();
  CLI::Option* json = part->add_flag("--json", options->json, "one line of JSON");
  part->add_flag("--profile", options->profile, "print where the time of the last round went")->excludes(json);
  part->footer("The best of three rounds. Random weights, batch 1; the head runs for the last token of the prompt only.");
  part->callback([options] {
    const int64_t positions = options->prompt + options->tokens;
    if (positions > numerics::kMaxPositions) {
      throw UsageError(
          Complaint{"--prompt, --tokens", fmt::format("{} positions", positions), fmt::format("at most {}", numerics::kMaxPositions), ""});
    }
    run(*options);
  });
}

}  // namespace dz::cli
