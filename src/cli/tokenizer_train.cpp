// deltazero tokenizer-train: a byte-level BPE vocabulary from text.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/thread_pool.h"
#include "cli/cli.h"
#include "cli/corpus_options.h"
#include "text/trainer.h"

namespace dz::cli {
namespace {

struct Options {
  std::vector<std::string> inputs;
  std::string out;
  std::string feed = "lines";
  std::vector<std::string> special;
  text::TrainerOptions trainer;
  text::ExtractOptions extract;
  int threads = default_threads();
};

text::WordCounts count(const Options& options) {
  std::vector<fs::path> paths;
  for (const CorpusInput& input : parse_inputs(options.inputs)) paths.insert(paths.end(), input.paths.begin(), input.paths.end());
  text::DocumentReader reader(std::move(paths), options.extract);
  ThreadPool pool(options.threads);
  ProgressLine line;
  text::WordCounts counts =
      text::count_words(reader, options.feed == "lines" ? text::Feed::kLines : text::Feed::kDocuments, pool,
                        [&](int64_t bytes) { line.show(fmt::format("counting  {:.1f} MB", static_cast<double>(bytes) * 1e-6)); });
  line.show("");
  warn_about("input", reader.counts());
  if (reader.counts().documents == 0) throw DataError("--input: found no text in " + std::to_string(reader.counts().files) + " files");
  fmt::print("corpus     {} documents, {:.1f} MB, {} distinct pieces\n", reader.counts().documents, static_cast<double>(reader.counts().bytes) * 1e-6,
             counts.distinct());
  return counts;
}

void run(Options options) {
  for (std::string& token : options.special)
    if (std::find(options.trainer.special_tokens.begin(), options.trainer.special_tokens.end(), token) == options.trainer.special_tokens.end())
      options.trainer.special_tokens.push_back(std::move(token));
  const auto least = static_cast<int64_t>(256 + options.trainer.special_tokens.size());
  if (options.trainer.vocab_size < least)
    throw UsageError(
        fmt::format("--vocab {}: expected at least {}: 256 bytes and {} special tokens", options.trainer.vocab_size, least, least - 256));
  const text::WordCounts counts = count(options);
  ProgressLine line;
  const text::TrainedVocabulary vocabulary =
      text::train_bpe(counts, options.trainer, [&](int64_t done, int64_t wanted) { line.show(fmt::format("merges  {} of {}", done, wanted)); });
  line.show("");
  const std::string json = text::to_tokenizer_json(vocabulary);
  const fs::path out = options.out;
  if (out.has_parent_path()) dz::create_directories(out.parent_path());
  write_file_atomic(out, json);
  const auto size = static_cast<int64_t>(vocabulary.tokens.size());
  if (size < options.trainer.vocab_size)
    fmt::print(stderr, "note: the text gave out at {} tokens, {} were asked for\n", size, options.trainer.vocab_size);
  fmt::print("tokenizer  {}  {} tokens, {} merges  sha256 {}\n", options.out, size, vocabulary.merges.size(), sha256_hex(json));
}

}  // namespace

void add_tokenizer_train(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("tokenizer-train", "train a byte-level BPE tokenizer on text");
  auto options = std::make_shared<Options>();
  verb->add_option("--input", options->inputs, "[NAME=]PATH...: files or directories (txt, md, rst, pod, html, jsonl; .gz, .zst)")->required();
  verb->add_option("--vocab", options->trainer.vocab_size, "tokens, special ones and the 256 bytes included")->capture_default_str();
  verb->add_option("--out", options->out, "where to write tokenizer.json")->required();
  verb->add_option("--feed", options->feed, "lines: no token spans a line end; documents: it may")
      ->check(CLI::IsMember({"lines", "documents"}))
      ->capture_default_str();
  verb->add_option("--special", options->special, "more special tokens behind <|endoftext|>, which has id 0");
  verb->add_option("--min-frequency", options->trainer.min_frequency, "leave a rarer pair unmerged")->check(CLI::NonNegativeNumber);
  verb->add_option("--max-token-length", options->trainer.max_token_length, "limit in bytes, by the rule of the tokenizers library")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--field", options->extract.field, "field of a JSON line that holds the text")->capture_default_str();
  verb->add_option("--threads", options->threads, "the result does not depend on it")->check(CLI::Range(1, 1024));
  verb->footer("The file is byte for byte what the Hugging Face tokenizers library makes of the same text.");
  verb->callback([options] { run(*options); });
}

}  // namespace dz::cli
