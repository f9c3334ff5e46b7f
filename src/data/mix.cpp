#include "data/mix.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/error.h"
#include "base/hash.h"

namespace dz::data {
namespace {

constexpr std::string_view kPlaceholder = "{TOKENIZER}";
constexpr std::string_view kDolma2 = "allenai/dolma2-tokenizer", kSigdig = "allenai/dolma2-tokenizer-sigdig",
                           kNeox = "allenai/gpt-neox-olmo-dolma-v1_5";

// Their files lie under the name dolma3-tokenizer, which is the same tokenizer. The first midtraining mix has one year in its name and another
// in its file's name (ai2-olmo-core 2.4.0); both are taken for it.
constexpr std::array<std::string_view, 8> kDolma3Mixes = {"OLMo-mix-0625-official",
                                                          "OLMo-mix-0925-official",
                                                          "OLMo-midtraining-mix-0725-100B",
                                                          "OLMo-midtraining-mix-0625-100B",
                                                          "OLMo-midtraining-mix-0925-ingredient1-100B",
                                                          "OLMo-midtraining-mix-0925-ingredient2-100B",
                                                          "OLMo-longmino-mix-0625",
                                                          "OLMo-longmino-mix-0925"};

constexpr std::pair<std::string_view, std::string_view> kAliases[] = {
    {"dolma3-0625-6T-mix", "OLMo-mix-0625"}, {"dolma3-0925-6T-mix", "OLMo-mix-0925"}, {"dolma3-0925-150B-mix", "OLMo-mix-0625-150Bsample"}};

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r') || (c >= '\x1c' && c <= '\x1f'); }  // Python's, of ASCII

std::string_view strip(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// The next line without its end; `text` becomes what follows.
std::string_view take_line(std::string_view& text) {
  const size_t end = std::min(text.find_first_of("\r\n"), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end);
  if (text.starts_with("\r\n")) text.remove_prefix(1);
  if (!text.empty()) text.remove_prefix(1);
  return line;
}

std::string replace_placeholder(std::string_view path, std::string_view folder) {
  std::string out;
  for (size_t at = 0;;) {
    const size_t found = path.find(kPlaceholder, at);
    out += path.substr(at, found - at);
    if (found == std::string_view::npos) return out;
    out += folder;
    at = found + kPlaceholder.size();
  }
}

std::string shown(std::string_view line) { return fmt::format("\"{}{}\"", line.substr(0, 80), line.size() > 80 ? "..." : ""); }

}  // namespace

std::string canonical_mix_name(std::string_view name) {
  for (const auto& [alias, real] : kAliases) {
    if (name == alias) return std::string(real);
  }
  return std::string(name);
}

std::string tokenizer_folder(std::string_view mix_name, std::string_view tokenizer) {
  const std::string name = canonical_mix_name(mix_name);
  // One question after the other, as there: a mix with a rule of its own never comes to the last one.
  if (name == "v3-small-ppl-validation") {
    if (tokenizer == kNeox) return "gptneox20b";
    if (tokenizer == kDolma2) return "dolma2-tokenizer";
  } else if (name == "code-fresh") {
    if (tokenizer == kDolma2) return "dolma2-tokenizer";
  } else if (name == "OLMo-mix-0625") {
    if (tokenizer == kSigdig) return "dolma2-tokenizer-sigdig";
  } else if (std::find(kDolma3Mixes.begin(), kDolma3Mixes.end(), name) != kDolma3Mixes.end()) {
    if (tokenizer == kDolma2) return "allenai/dolma3-tokenizer";
  } else if (tokenizer == kNeox) {
    return "gpt-neox-olmo-dolma-v1_5";
  }
  return std::string(tokenizer);
}

std::vector<MixEntry> parse_mix(std::string_view text, std::string_view folder, const std::string& where) {
  std::vector<MixEntry> entries;
  for (int64_t number = 1; !text.empty(); ++number) {
    const std::string_view line = strip(take_line(text));
    if (line.empty() || line.front() == '#') continue;
    const auto refuse = [&](const char* expected) {
      throw DataError(Complaint{.where = fmt::format("{}:{}", where, number), .found = shown(line), .expected = expected, .hint = ""});
    };
    if (line.find('\0') != std::string_view::npos) refuse("text");
    const size_t comma = line.find(',');
    if (comma == std::string_view::npos || line.find(',', comma + 1) != std::string_view::npos) refuse("label,path with one comma");
    const std::string_view path = line.substr(comma + 1);
    if (path.find(kPlaceholder) == std::string_view::npos) refuse("a path with {TOKENIZER}");
    entries.push_back({.label = std::string(line.substr(0, comma)), .path = replace_placeholder(path, folder)});
  }
  return entries;
}

std::string below(std::string_view base_directory, std::string_view path) {
  return fmt::format("{}{}{}", base_directory, base_directory.ends_with('/') ? "" : "/", path);
}

MixSummary summarize(const std::vector<MixEntry>& entries) {
  MixSummary summary{.count = static_cast<int64_t>(entries.size())};
  Sha256 paths, labels;
  std::set<std::string_view> seen_paths, seen_names, seen_labels;
  for (const MixEntry& entry : entries) {
    if (&entry != &entries.front()) {
      paths.update("\n");
      labels.update("\n");
    }
    paths.update(entry.path);
    labels.update(entry.label);
    if (!seen_paths.insert(entry.path).second) ++summary.duplicates;
    if (seen_labels.insert(entry.label).second) summary.labels.push_back(entry.label);
    seen_names.insert(std::string_view(entry.path).substr(entry.path.rfind('/') + 1));
  }
  summary.paths_sha256 = paths.hex();
  summary.labels_sha256 = labels.hex();
  summary.basenames = static_cast<int64_t>(seen_names.size());
  if (!entries.empty()) {
    summary.first = entries.front().path;
    summary.last = entries.back().path;
  }
  return summary;
}

}  // namespace dz::data
