// deltazero encode, deltazero decode: text to ids and back.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <memory>

#include "base/error.h"
#include "cli/cli.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

namespace dz::cli {
namespace {

std::string read_stdin() {
  std::string text;
  char block[1 << 16];
  while (const size_t count = std::fread(block, 1, sizeof block, stdin)) text.append(block, count);
  if (std::ferror(stdin)) throw IoError("standard input: reading failed");
  return text;
}

void write_stdout(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) throw IoError("standard output: writing failed");
}

struct EncodeOptions {
  std::string tokenizer;
  std::string text;
  bool ordinary = false;
};

void run_encode(const EncodeOptions& options, bool has_text) {
  const text::Tokenizer tokenizer = text::Tokenizer::load(options.tokenizer);
  std::string text = has_text ? options.text : read_stdin();
  if (const int64_t replaced = text::replace_invalid_utf8(text))
    fmt::print(stderr, "note: {} ill-formed UTF-8 sequences replaced by U+FFFD\n", replaced);
  const std::vector<int32_t> ids = options.ordinary ? tokenizer.encode_ordinary(text) : tokenizer.encode(text);
  write_stdout(fmt::format("{}\n", fmt::join(ids, " ")));
}

struct DecodeOptions {
  std::string tokenizer;
  std::vector<std::string> ids;
  bool skip_special = false;
};

// Whole numbers with blanks, commas or brackets between them, so that JSON lists can be pasted.
std::vector<int32_t> parse_ids(std::string_view text) {
  constexpr std::string_view kBetween = " \t\r\n,[]";
  std::vector<int32_t> ids;
  for (size_t at = text.find_first_not_of(kBetween); at != std::string_view::npos; at = text.find_first_not_of(kBetween, at)) {
    const size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    const std::string_view word = text.substr(at, end - at);
    int32_t id = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || stop != word.data() + word.size() || id < 0)
      throw DataError(Complaint{.where = "id " + std::to_string(ids.size()),
                                .found = std::string(word.substr(0, 40)),
                                .expected = "a whole number from 0 below 2^31",
                                .hint = ""});
    ids.push_back(id);
    at = end;
  }
  return ids;
}

void run_decode(const DecodeOptions& options) {
  const text::Tokenizer tokenizer = text::Tokenizer::load(options.tokenizer);
  const std::vector<int32_t> ids = parse_ids(options.ids.empty() ? read_stdin() : fmt::format("{}", fmt::join(options.ids, " ")));
  int64_t unknown = 0;
  for (const int32_t id : ids) unknown += tokenizer.token_bytes(id).empty();
  if (unknown) fmt::print(stderr, "note: {} ids have no token and were left out\n", unknown);
  write_stdout(tokenizer.decode(ids, options.skip_special));
}

}  // namespace

void add_encode(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("encode", "text to token ids");
  auto options = std::make_shared<EncodeOptions>();
  verb->add_option("--tokenizer", options->tokenizer, "tokenizer.json")->required();
  CLI::Option* text = verb->add_option("--text", options->text, "the text; without it, all of standard input");
  verb->add_flag("--ordinary", options->ordinary, "take special tokens such as <|endoftext|> literally, as tokenize does");
  verb->footer("Prints the ids on one line. Nothing is added in front or behind.");
  verb->callback([options, text] { run_encode(*options, text->count() > 0); });
}

void add_decode(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("decode", "token ids to text");
  auto options = std::make_shared<DecodeOptions>();
  verb->add_option("--tokenizer", options->tokenizer, "tokenizer.json")->required();
  verb->add_option("IDS", options->ids, "ids; without them, standard input");
  verb->add_flag("--skip-special", options->skip_special, "leave special tokens out");
  verb->footer("Prints the bytes of the text as they are; ids that do not form UTF-8 give U+FFFD.");
  verb->callback([options] { run_decode(*options); });
}

}  // namespace dz::cli
