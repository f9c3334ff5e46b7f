// deltazero tokenize: text to token shards that train reads.
#include "data/tokenize.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <memory>
#include <optional>

#include "base/error.h"
#include "cli/cli.h"
#include "cli/corpus_options.h"

namespace dz::cli {
namespace {

struct Options {
  std::string tokenizer;
  std::vector<std::string> inputs;
  std::string out;
  std::string special = "literal", eos, bos = "none";
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

std::string documents_text(int64_t count) { return fmt::format("{} document{}", count, count == 1 ? "" : "s"); }

void warn(const data::TokenizeCounts& row, const Options& options) {
  warn_about(row.name, row.text);
  const bool parsed = options.special == "parse";
  if (row.documents_with_special_text > 0)
    fmt::print(stderr, "warning: {}: {} {} out a special token such as <|endoftext|>, {} of them the one that ends documents; {}\n", row.name,
               documents_text(row.documents_with_special_text), row.documents_with_special_text == 1 ? "spells" : "spell",
               row.documents_with_eos_text,
               parsed ? "each became the token, and so the end of a document" : "it was encoded as text, not as the token");
  if (options.settings.held_out > 0 && row.documents[1] == 0)
    fmt::print(stderr, "warning: {}: {} in all, for training; more are needed for --held-out {}\n", row.name, documents_text(row.documents[0]),
               options.settings.held_out);
}

// An id, or the text of an added token.
int32_t parse_token(const std::string& option, const std::string& value, const text::Tokenizer& tokenizer) {
  if (const std::optional<int32_t> id = tokenizer.find_added(value)) return *id;
  int32_t id = -1;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), id);
  if (error == std::errc() && end == value.data() + value.size() && id >= 0 && id < tokenizer.vocab_size()) return id;
  throw UsageError(Complaint{.where = option,
                             .found = value,
                             .expected = fmt::format("an id below {}, or a special token of the tokenizer", tokenizer.vocab_size()),
                             .hint = ""});
}

data::TokenizeSettings settings_of(const Options& options, const text::Tokenizer& tokenizer) {
  data::TokenizeSettings settings = options.settings;
  if (!(settings.held_out >= 0 && settings.held_out < 1)) {
    throw UsageError(
        Complaint{.where = "--held-out", .found = fmt::format("{}", settings.held_out), .expected = "a share from 0 to 0.999", .hint = ""});
  }
  settings.tokenizer_json = read_file(options.tokenizer);
  if (options.special == "parse") settings.special = text::SpecialTokens::kParsed;
  if (!options.eos.empty()) {
    settings.eos = parse_token("--eos", options.eos, tokenizer);
  } else if (!tokenizer.find_added("<|endoftext|>")) {
    throw UsageError(Complaint{
        .where = "--eos", .found = "a tokenizer without <|endoftext|>", .expected = "the token that ends a document", .hint = "name it: --eos ID"});
  }
  if (options.bos != "none") settings.bos = parse_token("--bos", options.bos, tokenizer);
  return settings;
}

void run(const Options& options) {
  const text::Tokenizer tokenizer = text::Tokenizer::load(options.tokenizer);
  const data::TokenizeSettings settings = settings_of(options, tokenizer);
  std::vector<data::TextSource> sources;
  for (CorpusInput& input : parse_inputs(options.inputs)) sources.push_back({std::move(input.name), std::move(input.paths)});
  ProgressBar bar("tokenizing");
  const data::TokenizeHooks hooks{
      .progress = [&](const data::TokenizeProgress& at) { bar.show(std::string(at.source), at.input_bytes, at.input_bytes_total, at.text_bytes); },
      .notice = [&](const std::string& text) { fmt::print(stderr, "note: {}: {}\n", options.out, text); }};
  const data::TokenizeResult result = data::tokenize(tokenizer, sources, options.out, settings, hooks);
  bar.clear();
  for (const data::TokenizeCounts& row : result.sources) warn(row, options);
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
  verb->add_option("--field", options->settings.extract.field, "field of a JSON line that holds the text; doc.body is body inside doc")
      ->capture_default_str();
  verb->add_option("--id-field", options->settings.extract.id_field, "field of a JSON line that names the document")->capture_default_str();
  verb->add_flag("--strip", options->settings.extract.strip, "white space off both ends of each document, as Dolma does");
  verb->add_flag("--skip-bad-lines", options->settings.extract.skip_bad_lines, "count lines without a document rather than stop at the first");
  verb->add_option("--special-tokens", options->special, "literal: <|endoftext|> in a text is text; parse: it is the token, as in Dolma")
      ->check(CLI::IsMember({"literal", "parse"}))
      ->capture_default_str();
  verb->add_option("--eos", options->eos, "token behind each document, by id or text; default: <|endoftext|>");
  verb->add_option("--bos", options->bos, "token in front of each document, or none")->capture_default_str();
  constexpr int64_t kFewestTokens = 1024;  // fewer would make millions of files of any corpus
  constexpr int64_t kMostTokens = int64_t{1} << 40;
  verb->add_option("--max-shard-tokens", options->settings.shard_tokens, "of a token file")
      ->check(CLI::Range(kFewestTokens, kMostTokens))
      ->capture_default_str();
  verb->add_flag("--whole-documents", options->settings.whole_documents, "no document goes over two files");
  verb->add_option("--threads", options->settings.threads, "the result does not depend on it")->check(CLI::Range(1, 1024));
  verb->footer(
      "NAME is the source by which losses are reported; default: the base name of PATH. Cut off at any moment, the same command goes on where it "
      "was.");
  verb->callback([options] { run(*options); });
}

}  // namespace dz::cli
