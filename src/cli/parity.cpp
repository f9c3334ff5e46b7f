// deltazero parity MODEL --golden FILE: how far the model's logits are from those that another program computed.
#include "model/parity.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/thread_pool.h"
#include "cli/cli.h"
#include "cli/corpus_options.h"

namespace dz::cli {
namespace {

// Largest KL of one position, in nats, that two correct programs can show. fp32 against fp32 gives about 1e-10; bf16 up to 6e-3 on the
// goldens; the weakest known mistake has a mean of 0.03.
constexpr double kFp32MaxKl = 1e-6, kBf16MaxKl = 1.5e-2;

struct Options {
  std::string model, golden, dtype = "fp32";
  std::optional<double> max_kl;
  int threads = 0;
  bool json = false;
};

void print_json(const std::vector<model::ParityPair>& pairs) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const model::ParityPair& pair : pairs) {
    list.push_back({{"name", pair.name},
                    {"mean_kl", pair.stats.mean_kl},
                    {"max_kl", pair.stats.max_kl},
                    {"max_abs", pair.stats.max_abs},
                    {"top1_agreement", pair.stats.top1_agreement}});
  }
  fmt::print("{}\n", nlohmann::ordered_json{{"pairs", list}}.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

void print_table(const std::vector<model::ParityPair>& pairs, double limit) {
  fmt::print("{:<16} {:>9} {:>10} {:>10} {:>10} {:>7}  {}\n", "pair", "positions", "mean KL", "max KL", "max abs", "top-1", "");
  for (const model::ParityPair& pair : pairs) {
    const model::ParityStats& stats = pair.stats;
    fmt::print("{:<16} {:>9} {:>10.2e} {:>10.2e} {:>10.2e} {:>6.1f}%  {}\n", pair.name, stats.positions, stats.mean_kl, stats.max_kl, stats.max_abs,
               100.0 * stats.top1_agreement, stats.max_kl <= limit ? "same" : "DIFFERENT");
  }
  fmt::print("same: a largest KL of at most {:.1e} nats at every position\n", limit);
}

void run_parity(const Options& options) {
  ThreadPool pool(options.threads > 0 ? options.threads : default_threads());
  const bool is_bf16 = options.dtype == "bf16";
  const model::LoadedModel model = model::load_model(options.model);
  const auto pairs =
      is_bf16 ? model::compare_with_golden<bf16>(model, options.golden, pool) : model::compare_with_golden<float>(model, options.golden, pool);
  const double limit = options.max_kl.value_or(is_bf16 ? kBf16MaxKl : kFp32MaxKl);
  if (options.json) {
    print_json(pairs);
  } else if (!pairs.empty()) {
    print_table(pairs, limit);
  } else {
    fmt::print("{}: no NAME.input_ids with a NAME.logits, nothing to compare\n", options.golden);
  }
  // A NaN is not below the limit.
  const bool same = std::ranges::all_of(pairs, [&](const model::ParityPair& pair) { return pair.stats.max_kl <= limit; });
  if (pairs.empty()) set_exit_code(static_cast<int>(ExitCode::kNothingToCompare));
  if (!same) set_exit_code(static_cast<int>(ExitCode::kDifferent));
}

}  // namespace

void add_parity(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("parity", "compare a model's logits with golden ones");
  verb->add_option("model", options->model, "checkpoint, run, or Hugging Face directory")->required()->type_name("MODEL");
  verb->add_option("--golden", options->golden, "every NAME.input_ids with a NAME.logits is compared")->required()->type_name("FILE.safetensors");
  verb->add_option("--dtype", options->dtype, "fp32 or bf16")->capture_default_str()->check(CLI::IsMember({"fp32", "bf16"}))->type_name("DTYPE");
  verb->add_option("--max-kl", options->max_kl, "nats that still count as the same; 1e-6 for fp32, 1.5e-2 for bf16 unless given")
      ->check(CLI::NonNegativeNumber)
      ->type_name("X");
  verb->add_option("--threads", options->threads, "0: every core")->capture_default_str()->check(CLI::Range(0, 1024))->type_name("N");
  verb->add_flag("--json", options->json, "print JSON");
  verb->footer("KL(golden || model) in nats over the whole vocabulary, in float64.\nExit 0: same; 1: a pair differs; 2: the file has no pair.");
  verb->callback([options] { run_parity(*options); });
}

}  // namespace dz::cli
