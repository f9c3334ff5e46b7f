// deltazero tokenize: text to token shards that train reads.
#include "data/tokenize.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "base/error.h"
#include "cli/cli.h"
#include "cli/corpus_options.h"

namespace dz::cli {
namespace {

struct Options {
  std::string tokenizer;
  std::vector<std::string> inputs;
  std::string out;
  data::TokenizeSettings settings;
};

constexpr const char* kHeader = "{:<18} {:>10} {:>13} {:>13} {:>11} {:>15} {:>16}\n";
constexpr const char* kRow = "{:<18} {:>10} {:>13} {:>13} {:>11.3f} {:>15} {:>16}\n";

void print_row(const data::TokenizeCounts& row) {
  const int64_t documents = row.documents[0] + row.documents[1];
  const int64_t tokens = row.tokens[0] + row.tokens[1];
  // EOS stands for no byte of the text.
  const double ratio = static_cast<double>(row.text.bytes) / static_cast<double>(std::max<int64_t>(1, tokens - documents));
  fmt::print(kRow, row.name, documents, row.text.bytes, tokens, ratio, row.documents[1], row.tokens[1]);
}

void print_table(const data::TokenizeResult& result) {
  fmt::print(kHeader, "source", "documents", "bytes", "tokens", "bytes/token", "held-out docs", "held-out tokens");
  data::TokenizeCounts total;
  total.name = "total";
  for (const data::TokenizeCounts& row : result.sources) {
    print_row(row);
    total.text.bytes += row.text.bytes;
    for (size_t split = 0; split < 2; ++split) {
      total.documents[split] += row.documents[split];
      total.tokens[split] += row.tokens[split];
    }
  }
  if (result.sources.size() > 1) print_row(total);
}

void warn(const data::TokenizeCounts& row, double held_out) {
  warn_about(row.name, row.text);
  if (row.documents_with_special_text > 0)
    fmt::print(stderr, "warning: {}: {} documents spell out a special token such as <|endoftext|>; it was encoded as text, not as the token\n",
               row.name, row.documents_with_special_text);
  if (held_out > 0 && row.documents[1] == 0)
    fmt::print(stderr, "warning: {}: its {} document is all for training; more documents are needed for --held-out {}\n", row.name, row.documents[0],
               held_out);
}

void run(const Options& options) {
  if (!(options.settings.held_out >= 0 && options.settings.held_out < 1)) {
    throw UsageError(
        Complaint{.where = "--held-out", .found = fmt::format("{}", options.settings.held_out), .expected = "a share from 0 to 0.999", .hint = ""});
  }
  const text::Tokenizer tokenizer = text::Tokenizer::load(options.tokenizer);
  std::vector<data::TextSource> sources;
  for (CorpusInput& input : parse_inputs(options.inputs)) sources.push_back({std::move(input.name), std::move(input.paths)});
  ProgressLine line;
  data::TokenizeSettings settings = options.settings;
  settings.tokenizer_json = read_file(options.tokenizer);
  const data::TokenizeResult result = data::tokenize(tokenizer, sources, options.out, settings, [&](const std::string& name, int64_t bytes) {
    line.show(fmt::format("tokenizing  {}  {:.1f} MB", name, static_cast<double>(bytes) * 1e-6));
  });
  line.show("");
  for (const data::TokenizeCounts& row : result.sources) warn(row, options.settings.held_out);
  print_table(result);
  fmt::print("shards  {}  {} tokens to train on, {} held out  digest {}\n", options.out, result.manifest.tokens(data::Split::kTrain),
             result.manifest.tokens(data::Split::kHeldOut), result.manifest.digest());
}

}  // namespace

void add_tokenize(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("tokenize", "turn text into token shards for train");
  auto options = std::make_shared<Options>();
  options->settings.threads = default_threads();
  verb->add_option("--tokenizer", options->tokenizer, "tokenizer.json")->required();
  verb->add_option("--input", options->inputs, "[NAME=]PATH...: files or directories (txt, md, rst, pod, html, jsonl; .gz, .zst)")->required();
  verb->add_option("--out", options->out, "directory of the shards; an older result in it is replaced when all is written")->required();
  verb->add_option("--held-out", options->settings.held_out, "share of the documents to keep out of training, by the hash of their text")
      ->check(CLI::Range(0.0, 0.999))
      ->capture_default_str();
  verb->add_option("--field", options->settings.extract.field, "field of a JSON line that holds the text")->capture_default_str();
  verb->add_option("--threads", options->settings.threads, "the result does not depend on it")->check(CLI::Range(1, 1024));
  verb->footer("Each document is followed by <|endoftext|>. NAME is the source by which losses are reported; default: the base name of PATH.");
  verb->callback([options] { run(*options); });
}

}  // namespace dz::cli
