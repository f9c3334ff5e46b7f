// deltazero mix: what a mix file of OLMo-core holds, whether its files are there, and what a source mixture takes from them.
#include "data/mix.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "cli/cli.h"
#include "cli/token_options.h"
#include "data/fingerprint.h"
#include "data/mixture_data.h"

namespace dz::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostMissing = 10;

struct MixOptions {
  TokenOptions tokens;
  std::string file, allocate;
  bool check = false, json = false;
  std::string name() const { return tokens.mix_name.empty() ? fs::path(file).stem().string() : tokens.mix_name; }
  std::string folder() const { return data::tokenizer_folder(name(), tokens.identifier()); }
};

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }
void print(const Json& json) { print(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"); }

// Which files of the mix are not below the base directory, or are no regular files.
std::vector<std::string> missing_files(const MixOptions& o, const std::vector<data::MixEntry>& entries) {
  std::vector<std::string> missing;
  std::error_code ignored;
  for (const data::MixEntry& entry : entries) {
    const std::string path = data::below(o.tokens.base_directory, entry.path);
    if (!fs::is_regular_file(path, ignored)) missing.push_back(path);
  }
  return missing;
}

void check(const MixOptions& o) {
  const std::vector<data::MixEntry> entries = data::parse_mix(data::read_list(o.file), o.folder(), o.file);
  const data::MixSummary summary = data::summarize(entries);
  const bool local = !o.tokens.base_directory.empty();
  const std::vector<std::string> missing = local ? missing_files(o, entries) : std::vector<std::string>{};
  Json json = {{"mix", data::canonical_mix_name(o.name())},
               {"tokenizer", o.tokens.identifier()},
               {"folder", o.folder()},
               {"count", summary.count},
               {"paths_sha256", summary.paths_sha256},
               {"labels_sha256", summary.labels_sha256},
               {"first", summary.first},
               {"last", summary.last},
               {"duplicates", summary.duplicates},
               {"basenames", summary.basenames},
               {"labels", summary.labels.size()}};
  if (local) json["present"] = summary.count - static_cast<int64_t>(missing.size());
  if (o.json) {
    if (local) json["missing"] = missing;
    print(json);
  } else {
    std::string text;
    for (const auto& [key, value] : json.items())
      text += fmt::format("{:<14} {}\n", key, value.is_string() ? value.get<std::string>() : value.dump());
    for (size_t i = 0; i < std::min(missing.size(), kMostMissing); ++i) text += fmt::format("missing        {}\n", missing[i]);
    if (missing.size() > kMostMissing) text += fmt::format("missing        and {} more\n", missing.size() - kMostMissing);
    print(text);
  }
  if (!missing.empty()) set_exit_code(static_cast<int>(ExitCode::kNoInput));
}

void show_olmo_core(const MixOptions& o, const data::MixtureSpec& spec, const data::BareStore& files) {
  const data::FileTokens tokens = data::tokens_of_files(spec, files);
  Json entries = Json::array();
  std::vector<data::FingerprintFile> sizes;
  int64_t total = 0;
  std::string text;
  for (const data::MixtureEntry& entry : data::allocate_as_olmo_core(spec, tokens)) {
    const data::MixtureSource& source = spec.sources[static_cast<size_t>(entry.source)];
    const std::string& path = source.paths[static_cast<size_t>(entry.file)];
    entries.push_back({{"source", source.name}, {"path", path}, {"tokens", entry.tokens}});
    text += fmt::format("{:>16} tokens   {}   {}\n", entry.tokens, source.name, path);
    sizes.push_back({.path = path, .size = entry.tokens * data::size_of(files.type())});
    total += entry.tokens;
  }
  const int64_t instances = total / spec.sequence_length, needed = data::needed_instances(spec);
  const std::string fingerprint =
      data::olmo_core_fingerprint("NumpyFSLDatasetMixture", data::fixed_fields(files.vocabulary(), files.type(), 0), sizes);
  if (instances < needed) std::fprintf(stderr, "note: %s\n", fmt::format("{} instances, the steps need {}", instances, needed).c_str());
  if (o.json) {
    return print(Json{{"dialect", data::name_of(spec.dialect)},
                      {"needed_instances", needed},
                      {"instances", instances},
                      {"tokens", total},
                      {"fingerprint", fingerprint},
                      {"entries", entries}});
  }
  print(text + fmt::format("{:>16} tokens   {} instances of {}, needed {}\nfingerprint {}   NumpyFSLDatasetMixture\n", total, instances,
                           spec.sequence_length, needed, fingerprint));
}

void show_sampled(const MixOptions& o, const data::MixtureSpec& spec, const data::BareStore& files) {
  Json sources = Json::array();
  std::string text;
  int64_t instances = 0;
  const std::vector<data::SampledSource> sampled = data::allocate_sampled(spec, data::tokens_of_files(spec, files));
  for (size_t i = 0; i < sampled.size(); ++i) {
    const data::MixtureSource& source = spec.sources[i];
    Json list = Json::array();
    for (size_t j = 0; j < source.paths.size(); ++j) {
      const data::SampledFile& file = sampled[i].files[j];
      const int64_t taken = sampled[i].rounds * file.usable + file.rest;
      list.push_back({{"path", source.paths[j]}, {"instances", taken}, {"of", file.instances}});
      text += fmt::format("{:>16} of {} instances   {}   {}\n", taken, file.instances, source.name, source.paths[j]);
    }
    sources.push_back({{"source", source.name}, {"ratio", source.ratio}, {"instances", sampled[i].instances}, {"files", list}});
    instances += sampled[i].instances;
  }
  if (o.json)
    return print(Json{{"dialect", data::name_of(spec.dialect)},
                      {"seed", spec.seed},
                      {"needed_instances", data::needed_instances(spec)},
                      {"instances", instances},
                      {"tokens", instances * spec.sequence_length},
                      {"sources", sources}});
  print(text + fmt::format("{:>16} instances of {}\n", instances, spec.sequence_length));
}

void allocate(const MixOptions& o) {
  std::vector<data::MixEntry> entries;
  const bool local = !o.tokens.base_directory.empty();
  if (local) {
    entries = data::read_mix(o.file, o.tokens.mix_place());
  } else {
    data::parse_mix(data::read_list(o.file), o.folder(), o.file);
  }
  const data::MixtureSpec spec = data::read_mixture_spec(o.allocate, local ? &entries : nullptr);
  const auto files = data::mixture_files(spec, o.tokens.settings(nullptr));
  for (const std::string& note : files->notes()) std::fprintf(stderr, "note: %s\n", note.c_str());
  return spec.dialect == data::MixtureDialect::kOlmoCore ? show_olmo_core(o, spec, *files) : show_sampled(o, spec, *files);
}

}  // namespace

void add_mix(CLI::App& app) {
  const auto o = std::make_shared<MixOptions>();
  CLI::App* verb = app.add_subcommand("mix", "read a mix file of OLMo-core, or allocate a source mixture");
  verb->add_option("FILE", o->file, "lines of label,path")->required();
  verb->add_option("--tokenizer", o->tokens.tokenizer, "identifier or known name; stands for {TOKENIZER}")->required();
  o->tokens.add_to(*verb);
  CLI::Option* check_option = verb->add_flag("--check", o->check, "count and hash the entries; with --base-dir look for the files");
  CLI::Option* allocate_option = verb->add_option("--allocate", o->allocate, "spec of a source mixture (YAML or JSON)");
  check_option->excludes(allocate_option);
  verb->add_flag("--json", o->json, "one JSON object on standard output");
  verb->footer("exit 65: a line that is no entry; 66: files are missing; 78: a mixture that the files cannot give");
  verb->callback([o] {
    if (!o->check && o->allocate.empty()) throw UsageError("deltazero mix: one of --check and --allocate SPEC is needed");
    o->check ? check(*o) : allocate(*o);
  });
}

}  // namespace dz::cli
