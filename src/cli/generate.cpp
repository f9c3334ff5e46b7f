// deltazero generate MODEL --prompt TEXT | --ids FILE: continues a text, or sequences of tokens.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "cli/cli.h"
#include "cli/continue_text.h"
#include "cli/corpus_options.h"
#include "model/decode.h"
#include "model/load.h"
#include "numerics/rope.h"
#include "text/id_lines.h"

namespace dz::cli {
namespace {

struct Options {
  std::string model, tokenizer, ids;
  std::optional<std::string> prompt;
  bool json = false;
  ContinueSettings settings;
  int threads = 0;
};

text::Tokenizer load_tokenizer(const Options& options, const fs::path& model) {
  if (!options.tokenizer.empty()) return text::Tokenizer::load(options.tokenizer);
  const fs::path beside = model / "tokenizer.json";
  if (!fs::exists(beside)) {
    throw InputError(Complaint{beside.string(), "no such file", "the tokenizer of the model beside its weights", "give --tokenizer FILE"});
  }
  return text::Tokenizer::load(beside);
}

using Sequences = std::vector<std::vector<int32_t>>;

// Each sequence for itself, so that it does not depend on its neighbours.
template <class T>
Sequences continue_all(const model::LoadedModel& model, const Sequences& prompts, const ContinueSettings& settings, ThreadPool& pool) {
  const size_t longest = std::ranges::max(prompts, {}, &std::vector<int32_t>::size).size();
  if (static_cast<int64_t>(longest) > numerics::kMaxPositions - settings.max_tokens)
    throw DataError(
        Complaint{"--ids", fmt::format("{} tokens in a line", longest), fmt::format("at most {} with what follows", numerics::kMaxPositions), ""});
  model::Decoder<T> decoder(model.config, static_cast<int64_t>(longest) + settings.max_tokens, pool);
  decoder.set_weights(model.parameters);
  Sequences all;
  for (const std::vector<int32_t>& prompt : prompts) {
    decoder.reset();
    all.push_back(model::generate<T>(decoder, prompt, settings.max_tokens, settings.sampling, model.config.eos_token_ids));
  }
  return all;
}

void continue_ids(const model::LoadedModel& model, const Options& options, ThreadPool& pool) {
  const Sequences prompts = text::read_id_lines(options.ids);
  if (prompts.empty()) throw DataError(Complaint{options.ids, "no tokens", "a sequence a line", "as in: 100257 791 2768"});
  const Sequences after = options.settings.dtype == "fp32" ? continue_all<float>(model, prompts, options.settings, pool)
                                                           : continue_all<bf16>(model, prompts, options.settings, pool);
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (size_t i = 0; i < prompts.size(); ++i) {
    if (options.json) {
      list.push_back({{"prompt", prompts[i]}, {"tokens", after[i]}});
    } else {
      fmt::print("{}\n", fmt::join(after[i], " "));
    }
  }
  if (options.json) fmt::print("{}\n", nlohmann::ordered_json{{"sequences", list}}.dump());
}

void run_generate(const Options& options) {
  if (options.prompt.has_value() == !options.ids.empty()) throw UsageError("generate: either --prompt TEXT or --ids FILE");
  if (options.json && options.ids.empty()) throw UsageError("generate: --json goes with --ids");
  model::validate(options.settings.sampling);
  ThreadPool pool(options.threads > 0 ? options.threads : default_threads());
  const model::LoadedModel model = model::load_model(options.model);
  if (!options.ids.empty()) return continue_ids(model, options, pool);
  const text::Tokenizer tokenizer = load_tokenizer(options, model.directory);
  fmt::print("{}\n", continue_text(model.config, model.parameters, tokenizer, *options.prompt, options.settings, pool));
}

}  // namespace

void add_generate(CLI::App& app) {
  auto options = std::make_shared<Options>();
  ContinueSettings& settings = options->settings;
  settings.dtype = "fp32";  // near ties fall as in a float32 run of the reference
  CLI::App* verb = app.add_subcommand("generate", "continue a text");
  verb->add_option("model", options->model, "checkpoint, run, or Hugging Face directory")->required()->type_name("MODEL");
  verb->add_option("--prompt", options->prompt, "text to continue; empty: the start of a document")->type_name("TEXT");
  verb->add_option("--ids", options->ids, "tokens to continue instead: a sequence a line, with blanks or commas between numbers")->type_name("FILE");
  verb->add_option("--max-tokens", settings.max_tokens, "tokens to add")->capture_default_str()->check(CLI::Range(1, 1 << 20))->type_name("N");
  verb->add_option("--temperature", settings.sampling.temperature, "0: always the likeliest token")->capture_default_str()->type_name("T");
  verb->add_option("--top-k", settings.sampling.top_k, "keep so many of the likeliest tokens; 0: all")->capture_default_str()->type_name("K");
  verb->add_option("--top-p", settings.sampling.top_p, "keep the likeliest tokens that together reach this probability")
      ->capture_default_str()
      ->type_name("P");
  verb->add_option("--min-p", settings.sampling.min_p, "keep tokens with at least this share of the likeliest one's probability")
      ->capture_default_str()
      ->type_name("P");
  verb->add_option("--seed", settings.sampling.seed, "of the random choice")->capture_default_str()->type_name("S");
  verb->add_option("--dtype", settings.dtype, "fp32 or bf16")->capture_default_str()->check(CLI::IsMember({"bf16", "fp32"}))->type_name("DTYPE");
  verb->add_option("--tokenizer", options->tokenizer, "tokenizer.json; the one beside the weights unless given")->type_name("FILE");
  verb->add_flag("--json", options->json, "with --ids: one JSON object {sequences: [{prompt, tokens}]}");
  verb->add_option("--threads", options->threads, "0: every core")->capture_default_str()->check(CLI::Range(0, 1024))->type_name("N");
  verb->footer("The text depends on the model, the prompt and these options only: the same seed gives the same text on every machine.");
  verb->callback([options] { run_generate(*options); });
}

}  // namespace dz::cli
