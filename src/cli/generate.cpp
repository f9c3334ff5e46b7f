// deltazero generate MODEL --prompt TEXT: continues a text.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/error.h"
#include "base/thread_pool.h"
#include "cli/cli.h"
#include "cli/continue_text.h"
#include "cli/corpus_options.h"
#include "model/load.h"

namespace dz::cli {
namespace {

struct Options {
  std::string model, prompt, tokenizer;
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

void run_generate(const Options& options) {
  model::validate(options.settings.sampling);
  ThreadPool pool(options.threads > 0 ? options.threads : default_threads());
  const model::LoadedModel model = model::load_model(options.model);
  const text::Tokenizer tokenizer = load_tokenizer(options, model.directory);
  fmt::print("{}\n", continue_text(model.config, model.parameters, tokenizer, options.prompt, options.settings, pool));
}

}  // namespace

void add_generate(CLI::App& app) {
  auto options = std::make_shared<Options>();
  ContinueSettings& settings = options->settings;
  CLI::App* verb = app.add_subcommand("generate", "continue a text");
  verb->add_option("model", options->model, "checkpoint, run, or Hugging Face directory")->required()->type_name("MODEL");
  verb->add_option("--prompt", options->prompt, "text to continue; empty: the start of a document")->required()->type_name("TEXT");
  verb->add_option("--max-tokens", settings.max_tokens, "tokens to add")->capture_default_str()->check(CLI::Range(1, 1 << 20))->type_name("N");
  verb->add_option("--temperature", settings.sampling.temperature, "0: always the likeliest token")->capture_default_str()->type_name("T");
  verb->add_option("--top-p", settings.sampling.top_p, "keep the likeliest tokens that together reach this probability")
      ->capture_default_str()
      ->type_name("P");
  verb->add_option("--seed", settings.sampling.seed, "of the random choice")->capture_default_str()->type_name("S");
  verb->add_option("--dtype", settings.dtype, "bf16 or fp32")->capture_default_str()->check(CLI::IsMember({"bf16", "fp32"}))->type_name("DTYPE");
  verb->add_option("--tokenizer", options->tokenizer, "tokenizer.json; the one beside the weights unless given")->type_name("FILE");
  verb->add_option("--threads", options->threads, "0: every core")->capture_default_str()->check(CLI::Range(0, 1024))->type_name("N");
  verb->footer("The text depends on the model, the prompt and these options only: the same seed gives the same text on every machine.");
  verb->callback([options] { run_generate(*options); });
}

}  // namespace dz::cli
