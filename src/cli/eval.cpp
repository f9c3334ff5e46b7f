// deltazero eval loss MODEL --tokens SHARDS
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <memory>

#include "base/error.h"
#include "base/thread_pool.h"
#include "cli/cli.h"
#include "cli/corpus_options.h"
#include "eval/loss.h"
#include "model/load.h"

namespace dz::cli {
namespace {

struct Options {
  std::string model, tokens, split = "held-out";
  eval::LossSettings settings;
  int threads = 0;
  bool json = false;
};

void print_table(const eval::LossResult& result) {
  fmt::print("{:<24} {:>12} {:>9} {:>12}\n", "source", "tokens", "loss", "perplexity");
  for (const eval::SourceLoss& source : result.sources)
    fmt::print("{:<24} {:>12} {:>9.4f} {:>12.2f}\n", source.name, source.tokens, source.loss(), std::exp(source.loss()));
  fmt::print("{:<24} {:>12} {:>9.4f} {:>12.2f}\n", result.total.name, result.total.tokens, result.total.loss(), std::exp(result.total.loss()));
}

void run_eval_loss(Options options) {
  ThreadPool pool(options.threads > 0 ? options.threads : default_threads());
  options.settings.split = data::parse_split(options.split, "--split");
  const model::LoadedModel model = model::load_model(options.model);
  if (options.settings.sequence_length == 0) options.settings.sequence_length = model.config.max_position_embeddings;
  if (options.settings.sequence_length < 2) throw UsageError("eval loss: the model does not say its context length; give --sequence-length");
  const auto shards = std::make_shared<const data::TokenShards>(options.tokens);
  shards->verify(pool);
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  const auto progress = [&](int64_t done, int64_t all) {
    if (terminal) fmt::print(stderr, "\r{} of {} instances{}", done, all, done == all ? "\r\033[K" : "");
  };
  const eval::LossResult result = eval::held_out_loss(model.config, model.parameters, shards, options.settings, pool, progress);
  if (options.json) {
    fmt::print("{}", eval::to_json(result, options.settings, -1));
  } else {
    print_table(result);
  }
}

}  // namespace

void add_eval(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("eval", "evaluate a model")->require_subcommand(1);
  CLI::App* loss = verb->add_subcommand("loss", "mean cross entropy over token shards, by source");
  loss->add_option("model", options->model, "checkpoint, run, or Hugging Face directory")->required()->type_name("MODEL");
  loss->add_option("--tokens", options->tokens, "directory written by deltazero tokenize")->required()->type_name("SHARDS");
  loss->add_option("--split", options->split, "train or held-out")->capture_default_str()->type_name("SPLIT");
  loss->add_option("--dtype", options->settings.dtype, "bf16 or fp32")
      ->capture_default_str()
      ->check(CLI::IsMember({"bf16", "fp32"}))
      ->type_name("DTYPE");
  loss->add_option("--sequence-length", options->settings.sequence_length, "tokens of an instance; the model's context unless given")
      ->check(CLI::Range(2, 1 << 24))
      ->type_name("N");
  loss->add_option("--micro-batch", options->settings.micro_batch, "instances at a time")
      ->capture_default_str()
      ->check(CLI::Range(1, 65536))
      ->type_name("N");
  loss->add_option("--threads", options->threads, "0: every core")->capture_default_str()->check(CLI::Range(0, 1024))->type_name("N");
  loss->add_flag("--json", options->json, "print JSON");
  loss->callback([options] { run_eval_loss(*options); });
}

}  // namespace dz::cli
