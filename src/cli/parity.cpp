// deltazero parity A B --tokens FILE, deltazero parity MODEL --golden FILE: whether a model computes what a reference computes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/thread_pool.h"
#include "cli/cli.h"
#include "cli/corpus_options.h"
#include "eval/parity_record.h"
#include "eval/parity_report.h"

namespace dz::cli {
namespace {

struct Options {
  std::string model, ours, golden, tokens, gradients, gradients_of, dtype = "fp32";
  std::optional<double> mean_kl, max_kl, max_abs, hidden, gradient;
  eval::TokenFileSettings token_files;
  int64_t vocab = 0;
  int threads = 0;
  bool no_floor = false, json = false;
};

bool is_bf16(const Options& options) { return options.dtype == "bf16"; }

eval::ParityLimits limits_of(const Options& options) {
  eval::ParityLimits limits = eval::default_limits(options.dtype);
  limits.mean_kl = options.mean_kl.value_or(limits.mean_kl);
  limits.max_kl = options.max_kl.value_or(limits.max_kl);
  limits.hidden = options.hidden.value_or(limits.hidden);
  limits.gradient = options.gradient.value_or(limits.gradient);
  limits.max_abs = options.max_abs;
  return limits;
}

std::vector<eval::PairParity> compare(const Options& options, const model::LoadedModel& model, const eval::GoldenFile& golden, ThreadPool& pool) {
  return is_bf16(options) ? eval::compare_with_golden<bf16>(model, golden, pool) : eval::compare_with_golden<float>(model, golden, pool);
}

void compare_gradients(const Options& options, const model::LoadedModel& model, const eval::TokenSequence& sequence, const fs::path& file,
                       ThreadPool& pool, eval::ParityReport& report) {
  report.gradients_of = sequence.name;
  report.gradients = is_bf16(options) ? eval::compare_gradients<bf16>(model, sequence.tokens, sequence.instances, file, pool)
                                      : eval::compare_gradients<float>(model, sequence.tokens, sequence.instances, file, pool);
}

const eval::TokenSequence& sequence_for_gradients(const Options& options, const std::vector<eval::TokenSequence>& sequences) {
  if (options.gradients_of.empty() && sequences.size() == 1) return sequences.front();
  for (const eval::TokenSequence& sequence : sequences) {
    if (sequence.name == options.gradients_of) return sequence;
  }
  std::string names;
  for (const eval::TokenSequence& sequence : sequences) names += (names.empty() ? "" : ", ") + sequence.name;
  throw UsageError("parity: --gradients-of names whose tokens the gradients belong to: one of " + names);
}

void with_golden(const Options& options, ThreadPool& pool, eval::ParityReport& report) {
  const model::LoadedModel model = model::load_model(options.model);
  const eval::GoldenFile golden(options.golden, model.config, options.vocab);
  report.reference = options.golden;
  report.model = options.model;
  report.columns = golden.columns();
  report.pairs = compare(options, model, golden, pool);
  if (report.pairs.empty()) return;
  std::vector<eval::TokenSequence> sequences;
  bool hidden = false;
  for (const eval::GoldenPair& pair : golden.pairs()) {
    sequences.push_back({.name = pair.name, .instances = pair.instances, .tokens = golden.tokens(pair)});
    hidden = hidden || pair.has_hidden();
  }
  if (!options.no_floor) {
    const eval::Recording own = eval::record_logits(model, sequences, hidden, pool);
    report.floor = eval::compare_with_golden<bf16>(model, eval::GoldenFile(own.path(), model.config, options.vocab), pool);
  }
  if (!options.gradients.empty()) compare_gradients(options, model, sequence_for_gradients(options, sequences), options.gradients, pool, report);
}

// The reference is gone from memory before ours comes.
void two_models(const Options& options, ThreadPool& pool, eval::ParityReport& report) {
  const model::ModelConfig reference = model::load_config(options.model), ours = model::load_config(options.ours);
  if (options.vocab == 0 && reference.vocab_size != ours.vocab_size) {
    throw ConfigError(Complaint{options.ours, fmt::format("vocab_size {}", ours.vocab_size), fmt::format("the reference's {}", reference.vocab_size),
                                "--vocab N compares the first N logits of both"});
  }
  eval::TokenFileSettings settings = options.token_files;
  settings.vocab_size = std::min(reference.vocab_size, ours.vocab_size);
  const std::vector<eval::TokenSequence> sequences = eval::read_token_sequences(options.tokens, settings);
  report.reference = options.model;
  report.model = options.ours;
  if (sequences.empty()) return;
  const bool hidden = reference.n_layers == ours.n_layers && reference.d_model == ours.d_model;
  std::optional<eval::Recording> logits, gradients;
  const eval::TokenSequence* with_gradients = options.gradients_of.empty() ? nullptr : &sequence_for_gradients(options, sequences);
  {
    const model::LoadedModel model = model::load_model(options.model);
    logits = eval::record_logits(model, sequences, hidden, pool);
    const eval::GoldenFile golden(logits->path(), model.config, options.vocab);
    if (!options.no_floor) report.floor = eval::compare_with_golden<bf16>(model, golden, pool);
    if (with_gradients) gradients = eval::record_gradients(model, *with_gradients, pool);
  }
  const model::LoadedModel model = model::load_model(options.ours);
  const eval::GoldenFile golden(logits->path(), model.config, options.vocab);
  report.columns = golden.columns();
  report.pairs = compare(options, model, golden, pool);
  if (with_gradients) compare_gradients(options, model, *with_gradients, gradients->path(), pool, report);
}

void run_parity(const Options& options) {
  const bool golden = !options.golden.empty();
  if (golden == !options.tokens.empty() || golden == !options.ours.empty())
    throw UsageError("parity: two models and --tokens FILE, or one model and --golden FILE");
  if (!golden && !options.gradients.empty()) throw UsageError("parity: --gradients goes with --golden; for two models --gradients-of is enough");
  ThreadPool pool(options.threads > 0 ? options.threads : default_threads());
  eval::ParityReport report{.dtype = options.dtype, .limits = limits_of(options)};
  golden ? with_golden(options, pool, report) : two_models(options, pool, report);
  if (options.json) {
    fmt::print("{}", eval::to_json(report));
  } else if (report.pairs.empty()) {
    fmt::print("{}: nothing to compare\n", golden ? options.golden : options.tokens);
  } else {
    fmt::print("{}", eval::to_text(report));
  }
  if (report.pairs.empty()) {
    set_exit_code(static_cast<int>(ExitCode::kNothingToCompare));
  } else if (!eval::beyond_limits(report).empty()) {
    set_exit_code(static_cast<int>(ExitCode::kDifferent));
  }
}

void add_limit(CLI::App& verb, const char* name, std::optional<double>& value, const char* help) {
  verb.add_option(name, value, help)->check(CLI::NonNegativeNumber)->type_name("X");
}

}  // namespace

void add_parity(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("parity", "compare a model with a reference: another model, or what a reference computed");
  verb->add_option("reference", options->model, "checkpoint, run, or Hugging Face directory; the only model with --golden")->required();
  verb->add_option("ours", options->ours, "the model that is compared with it");
  verb->add_option("--tokens", options->tokens, "ids, a sequence a line; .safetensors with NAME.input_ids; or a .npy token file")->type_name("FILE");
  verb->add_option("--golden", options->golden, "NAME.input_ids with NAME.logits, .logsumexp, .hidden.i")->type_name("FILE.safetensors");
  verb->add_option("--gradients", options->gradients, "with --golden: of the mean next-token loss, by parameter")->type_name("FILE.safetensors");
  verb->add_option("--gradients-of", options->gradients_of, "the NAME whose tokens they belong to; S1 is the first line of --tokens")
      ->type_name("NAME");
  verb->add_option("--dtype", options->dtype, "of our side: fp32 or bf16")
      ->capture_default_str()
      ->check(CLI::IsMember({"fp32", "bf16"}))
      ->type_name("DTYPE");
  verb->add_option("--vocab", options->vocab, "compare the first N logits of a row; all unless given")->check(CLI::Range(1, 1 << 30))->type_name("N");
  verb->add_option("--length", options->token_files.length, "of the sequences of a .npy file")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20))
      ->type_name("N");
  verb->add_option("--sequences", options->token_files.sequences, "of a .npy file, from its start")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20))
      ->type_name("N");
  add_limit(*verb, "--mean-kl", options->mean_kl, "nats; 1e-7 for fp32, 3e-3 for bf16 unless given");
  add_limit(*verb, "--max-kl", options->max_kl, "nats, at any position; 1e-6 and 1.5e-2");
  add_limit(*verb, "--max-abs", options->max_abs, "of a logit; not checked unless given");
  add_limit(*verb, "--max-hidden", options->hidden, "relative rms of a hidden state; 1e-5 and 5e-2");
  add_limit(*verb, "--max-gradient", options->gradient, "of a tensor, relative to its largest; 2e-5 and 0.5");
  verb->add_flag("--no-floor", options->no_floor, "leave out the noise floor, the reference's fp32 against its bf16");
  verb->add_option("--threads", options->threads, "0: every core")->capture_default_str()->check(CLI::Range(0, 1024))->type_name("N");
  verb->add_flag("--json", options->json, "print JSON");
  verb->footer("KL(reference || ours) in nats, in float64. Exit 0: same; 1: beyond a limit; 2: nothing to compare.");
  verb->callback([options] { run_parity(*options); });
}

}  // namespace dz::cli
