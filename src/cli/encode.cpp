// deltazero encode, deltazero decode: text to ids and back.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>

#include "base/error.h"
#include "cli/cli.h"
#include "text/id_lines.h"
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

using FileHandle = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

// A file of JSON lines, "-" for standard input: what each line gives goes to standard output at once.
void each_json_line(const std::string& path, const std::function<void(std::string_view, const std::string&)>& each) {
  if (path == "-") return text::for_each_line(stdin, "standard input", each);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw InputError(Complaint{.where = path, .found = "a directory", .expected = "a file of JSON lines", .hint = ""});
  const FileHandle file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) throw InputError(path + ": " + std::strerror(errno));
  text::for_each_line(file.get(), path, each);
}

void write_part(std::string_view part) {
  if (std::fwrite(part.data(), 1, part.size(), stdout) != part.size()) throw IoError("standard output: writing failed");
}

void note_replaced(int64_t count) {
  if (count > 0) fmt::print(stderr, "note: {} ill-formed UTF-8 sequence{} replaced by U+FFFD\n", count, count == 1 ? "" : "s");
}

struct EncodeOptions {
  std::string tokenizer;
  std::string text;
  std::string jsonl;
  bool ordinary = false;
  bool offsets = false;
  bool add_special_tokens = false;
};

void run_encode_lines(const EncodeOptions& options, const text::Tokenizer& tokenizer) {
  text::LineEncoder encoder(tokenizer, {.special = options.ordinary ? text::SpecialTokens::kLiteral : text::SpecialTokens::kParsed,
                                        .offsets = options.offsets,
                                        .special_around = options.add_special_tokens});
  int64_t replaced = 0;
  each_json_line(options.jsonl, [&](std::string_view line, const std::string& where) { replaced += encoder.encode(line, where, write_part); });
  note_replaced(replaced);
}

void run_encode(const EncodeOptions& options, bool has_text) {
  const text::Tokenizer tokenizer = text::Tokenizer::load(options.tokenizer);
  if (!options.jsonl.empty()) return run_encode_lines(options, tokenizer);
  std::string text = has_text ? options.text : read_stdin();
  note_replaced(text::replace_invalid_utf8(text));
  std::vector<int32_t> ids = options.ordinary ? tokenizer.encode_ordinary(text) : tokenizer.encode(text);
  if (options.add_special_tokens) {
    ids.insert(ids.begin(), tokenizer.template_in_front().begin(), tokenizer.template_in_front().end());
    ids.insert(ids.end(), tokenizer.template_behind().begin(), tokenizer.template_behind().end());
  }
  write_stdout(fmt::format("{}\n", fmt::join(ids, " ")));
}

struct DecodeOptions {
  std::string tokenizer;
  std::vector<std::string> ids;
  std::string jsonl;
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
  if (!options.jsonl.empty()) {
    each_json_line(options.jsonl, [&](std::string_view line, const std::string& where) {
      text::decode_line(tokenizer, options.skip_special, line, where, write_part);
    });
    return;
  }
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
  CLI::Option* jsonl = verb->add_option("--jsonl", options->jsonl, "lines {\"text\": ..} or {\"bytes_hex\": ..} (- for standard input)");
  jsonl->excludes(text);
  verb->add_flag("--offsets", options->offsets, "with --jsonl: also the bytes [begin, end) of each token")->needs(jsonl);
  verb->add_flag("--add-special-tokens", options->add_special_tokens, "put what the file's template has around the text");
  verb->footer("Prints the ids on one line; with --jsonl, {\"ids\": [..]} for each line. Nothing is added in front or behind unless asked for.");
  verb->callback([options, text] { run_encode(*options, text->count() > 0); });
}

void add_decode(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("decode", "token ids to text");
  auto options = std::make_shared<DecodeOptions>();
  verb->add_option("--tokenizer", options->tokenizer, "tokenizer.json")->required();
  CLI::Option* ids = verb->add_option("IDS", options->ids, "ids; without them, standard input");
  verb->add_option("--jsonl", options->jsonl, "lines {\"ids\": [..]} (- for standard input) to lines {\"text\": ..}")->excludes(ids);
  verb->add_flag("--skip-special", options->skip_special, "leave special tokens out");
  verb->footer("Prints the bytes of the text as they are; ids that do not form UTF-8 give U+FFFD.");
  verb->callback([options] { run_decode(*options); });
}

}  // namespace dz::cli
