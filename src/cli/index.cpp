// deltazero index: which instance lies where in token files, ours or of others, with the fingerprints that three projects give them.
#include "data/index.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/thread_pool.h"
#include "cli/cli.h"
#include "cli/corpus_options.h"
#include "cli/token_options.h"
#include "data/fingerprint.h"

namespace dz::cli {
namespace {

using Json = nlohmann::ordered_json;

// Contents up to this size are hashed unless --hash says otherwise: some seconds.
constexpr int64_t kHashedUnasked = int64_t{16} << 30;

struct IndexOptions {
  TokenOptions tokens;
  std::vector<std::string> inputs;
  std::string out, format = "deltazero", hash = "auto", cache;
  int64_t sequence_length = 0, target_length = 0;
  int threads = default_threads();
  bool json = false, strict = false;
};

bool is_index(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored) || fs::path(path).extension() != ".json") return false;
  const std::string text = data::read_list(path);
  return text.find("\"deltazero-index-") != std::string::npos || text.find("\"format_version\"") != std::string::npos;
}

void refuse_to_replace(const std::string& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored) || is_index(path)) return;
  throw CreateError(
      Complaint{.where = path, .found = "a file that is no index", .expected = "an index, or nothing yet", .hint = "choose another name"});
}

int64_t bytes_of(const data::TokenStore& store) {
  int64_t bytes = 0;
  for (const data::TokenEntry& entry : store.entries()) bytes += entry.bytes;
  return bytes;
}

std::vector<std::optional<std::string>> hashes_of(const IndexOptions& o, const data::BareStore& store, const data::TokenInputs& inputs) {
  if (!inputs.sha256.empty() && o.hash != "yes") return inputs.sha256;
  if (o.hash == "yes" || (o.hash == "auto" && bytes_of(store) <= kHashedUnasked)) {
    ThreadPool pool(o.threads);
    store.hash(pool);
  }
  std::vector<std::optional<std::string>> hashes;
  for (int64_t i = 0; i < store.size(); ++i) {
    hashes.push_back(store.known_sha256(i));
    if (inputs.sha256.empty() || !hashes.back() || hashes.back() == inputs.sha256[static_cast<size_t>(i)]) continue;
    throw DataError(Complaint{.where = store.entry(i).name,
                              .found = "sha256 " + *hashes.back(),
                              .expected = *inputs.sha256[static_cast<size_t>(i)] + " as in manifest.json",
                              .hint = "the shard was changed: run tokenize again"});
  }
  return hashes;
}

struct Fingerprints {
  std::string ours, maxtext, olmo_core;  // olmo_core: empty when the vocabulary is not known
};

std::string maxtext_of(const data::TokenIndex& index) {
  std::vector<data::FingerprintFile> files;
  for (const data::IndexedFile& file : index.files) files.push_back({.path = file.path, .size = file.tokens});
  return data::maxtext_fingerprint(index.sequence_length, data::name_of(index.type), index.tokenizer, files);
}

void report(const IndexOptions& o, const data::TokenIndex& index, const Fingerprints& prints, const std::vector<std::string>& notes) {
  const auto hashed = std::count_if(index.files.begin(), index.files.end(), [](const data::IndexedFile& file) { return file.sha256.has_value(); });
  for (const std::string& note : notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  if (o.json) {
    Json json = {{"files", index.files.size()},
                 {"hashed_files", hashed},
                 {"dtype", data::name_of(index.type)},
                 {"sequence_length", index.sequence_length},
                 {"tokens", index.total_tokens()},
                 {"instances", index.total_instances()},
                 {"fingerprints", {{"deltazero", prints.ours}, {"maxtext", prints.maxtext}}},
                 {"notes", notes}};
    if (!prints.olmo_core.empty()) json["fingerprints"]["olmo_core"] = prints.olmo_core;
    const std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
    std::fwrite(text.data(), 1, text.size(), stdout);
    return;
  }
  std::string text = fmt::format("{} files   {} tokens of {}   {} instances of {}\n", index.files.size(), index.total_tokens(),
                                 data::name_of(index.type), index.total_instances(), index.sequence_length);
  text += fmt::format("deltazero  {}   contents of {} of {} files\n", prints.ours, hashed, index.files.size());
  text += fmt::format("maxtext    {}   paths and tokens\n", prints.maxtext);
  if (!prints.olmo_core.empty()) {
    text += fmt::format("olmo-core  {}   NumpyFSLDataset {}, max_target_sequence_length {}: names and sizes\n", prints.olmo_core,
                        data::kOlmoCoreFingerprintVersion, o.target_length > 0 ? std::to_string(o.target_length) : "None");
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void make(const IndexOptions& o) {
  if (o.sequence_length <= 0 || o.out.empty())
    throw UsageError("--seq and --out are needed, or an index to check: deltazero index SHARDS|MIX --seq L --out INDEX");
  if (o.target_length > 0 && o.target_length % o.sequence_length != 0)
    throw UsageError(Complaint{.where = "--max-target", .found = std::to_string(o.target_length), .expected = "a multiple of --seq", .hint = ""});
  refuse_to_replace(o.out);
  data::TokenInputs inputs = data::find_token_files(o.inputs, o.tokens.mix_place());
  data::BareSettings settings = o.tokens.settings(inputs.manifest ? &*inputs.manifest : nullptr);
  settings.paths = inputs.paths;
  settings.labels = inputs.labels;
  settings.strict = o.strict;
  settings.cache_directory = o.cache;
  const data::BareStore store(std::move(settings));
  const data::TokenIndex index = data::make_index(store, o.sequence_length, o.tokens.tokenizer, hashes_of(o, store, inputs));
  write_file_atomic(o.out, o.format == "maxtext" ? data::maxtext_index_json(index) : data::index_json(index));
  inputs.notes.insert(inputs.notes.end(), store.notes().begin(), store.notes().end());
  report(o, index,
         {.ours = data::index_fingerprint(index),
          .maxtext = maxtext_of(index),
          .olmo_core = data::olmo_core_fingerprint("NumpyFSLDataset", data::fixed_fields(store.vocabulary(), store.type(), o.target_length),
                                                   data::fingerprint_files(store))},
         inputs.notes);
}

// An index that is there already: its own numbers, then the files, then with --hash yes the contents that it covers.
void check(const IndexOptions& o) {
  const data::TokenIndex index = data::parse_index(data::read_list(o.inputs[0]), o.inputs[0]);
  data::check_index_files(index, o.tokens.base_directory);
  std::vector<std::string> notes;
  if (o.hash == "yes") {
    for (const data::IndexedFile& entry : index.files) {
      if (!entry.sha256) {
        notes.push_back(entry.path + ": its contents are not covered by the index");
        continue;
      }
      const File file = File::open_read(fs::path(o.tokens.base_directory) / entry.path);
      const std::string found = data::hash_file(file, [](int64_t, std::span<const std::byte>) {}).hashes.sha256;
      if (found != *entry.sha256)
        throw DataError(Complaint{.where = file.path().string(),
                                  .found = "sha256 " + found,
                                  .expected = *entry.sha256 + ", as in the index",
                                  .hint = "the file was changed"});
    }
  }
  report(o, index, {.ours = data::index_fingerprint(index), .maxtext = maxtext_of(index), .olmo_core = ""}, notes);
}

}  // namespace

void add_index(CLI::App& app) {
  const auto o = std::make_shared<IndexOptions>();
  CLI::App* verb = app.add_subcommand("index", "index token files of any origin and print their fingerprints, or check an index");
  verb->add_option("SHARDS|MIX", o->inputs, "shards, a directory, pattern or list of token files, a mix; or an index to check")->required();
  verb->add_option("--seq", o->sequence_length, "tokens of an instance");
  verb->add_option("--out", o->out, "the index");
  verb->add_option("--format", o->format, "deltazero or maxtext")->check(CLI::IsMember({"deltazero", "maxtext"}));
  verb->add_option("--tokenizer", o->tokens.tokenizer, "dolma2, gpt2 ... or any name; known ones give dtype and ids");
  o->tokens.add_to(*verb);
  verb->add_option("--max-target", o->target_length, "max_target_sequence_length of OLMo-core's fingerprint");
  verb->add_option("--hash", o->hash, "cover contents: yes, no, auto (up to 16 GiB)")->check(CLI::IsMember({"auto", "yes", "no"}));
  verb->add_option("--cache", o->cache, "directory that keeps the files' hashes");
  verb->add_flag("--strict", o->strict, "refuse files with bytes left over");
  verb->add_option("--threads", o->threads, "that hash")->check(CLI::Range(1, 1024));
  verb->add_flag("--json", o->json, "one JSON object on standard output");
  verb->footer("exit 65: a file is not what it is said to be; 66: a file is missing");
  verb->callback([o] {
    if (o->inputs.size() == 1 && o->out.empty() && is_index(o->inputs[0])) return check(*o);
    make(*o);
  });
}

}  // namespace dz::cli
