#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "data/file_list.h"
#include "data/source_mixture.h"

namespace dz::data {
namespace {

constexpr double kMostTokens = 0x1p53;  // whole numbers up to here are exact as doubles

// What stands there, for complaints.
std::string shown(const YAML::Node& node) {
  if (!node.IsDefined() || node.IsNull()) return "nothing";
  if (node.IsMap()) return "a map";
  if (node.IsSequence()) return node.size() == 0 ? "an empty list" : "a list";
  return node.Scalar().empty() ? "an empty text" : node.Scalar().substr(0, 40);
}

// One map of the spec. Keys have one or two names: ours, and OLMo-core's.
class Section {
 public:
  Section(const YAML::Node& node, std::string where) : node_(node), where_(std::move(where)) {
    if (!node.IsMap()) refuse(node, "", shown(node), "a map of keys and values");
    std::set<std::string> seen;
    for (const auto& item : node) {
      if (!seen.insert(item.first.Scalar()).second) refuse(item.first, item.first.Scalar(), "the key twice", "once");
    }
  }

  std::optional<YAML::Node> find(const char* key, const char* other = nullptr) {
    std::optional<YAML::Node> found;
    for (const char* name : {key, other}) {
      if (!name) continue;
      known_.insert(name);
      const YAML::Node value = node_[name];
      if (!value.IsDefined()) continue;
      if (found) refuse(value, name, fmt::format("{} and {}", key, other), "one of them");
      found = value;
    }
    return found;
  }
  YAML::Node at(const char* key, const char* other = nullptr) {
    if (const auto found = find(key, other)) return *found;
    refuse(node_, key, "nothing", "a value");
  }
  std::string text(const char* key, const char* other = nullptr) {
    const YAML::Node value = at(key, other);
    if (!value.IsScalar() || value.Scalar().empty()) refuse(value, key, shown(value), "a text");
    return value.Scalar();
  }
  template <class Number>
  Number number(const YAML::Node& value, const char* key, double least, double most) {
    Number out{};
    const std::string text = value.IsScalar() ? value.Scalar() : "";
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    const auto as_double = static_cast<double>(out);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(as_double) || as_double < least || as_double > most)
      refuse(value, key, shown(value), fmt::format("a number from {} to {}", least, most));
    return out;
  }
  // After every key was asked for.
  void finish() {
    for (const auto& item : node_) {
      if (!known_.contains(item.first.Scalar()))
        refuse(item.first, item.first.Scalar(), "an unknown key", fmt::format("one of {}", fmt::join(known_, ", ")));
    }
  }
  [[noreturn]] void refuse(const YAML::Node& node, const std::string& key, const std::string& found, const std::string& expected) const {
    // An empty text has no place of its own.
    const int line = std::max(node.Mark().line, 0) + 1;
    throw ConfigError(
        Complaint{.where = fmt::format("{}:{}{}", where_, line, key.empty() ? "" : ": " + key), .found = found, .expected = expected, .hint = ""});
  }

 private:
  YAML::Node node_;
  std::string where_;
  std::set<std::string> known_;
};

std::vector<std::string> texts(const Section& in, const YAML::Node& list, const char* key, const char* expected) {
  std::vector<std::string> out;
  if (!list.IsSequence() || list.size() == 0) in.refuse(list, key, shown(list), expected);
  for (const YAML::Node& item : list) {
    if (!item.IsScalar() || item.Scalar().empty()) in.refuse(item, key, shown(item), expected);
    out.push_back(item.Scalar());
  }
  return out;
}

std::vector<std::string> labelled_files(const Section& in, const YAML::Node& node, const std::vector<std::string>& labels,
                                        const std::vector<MixEntry>& mix) {
  std::vector<std::string> files;
  for (const std::string& label : labels) {
    if (std::none_of(mix.begin(), mix.end(), [&](const MixEntry& entry) { return entry.label == label; }))
      in.refuse(node, "labels", label, "a label of the mix");
  }
  for (const MixEntry& entry : mix) {
    if (std::find(labels.begin(), labels.end(), entry.label) == labels.end()) continue;
    if (!fs::is_regular_file(entry.path)) expand(entry.path);  // complains
    files.push_back(entry.path);
  }
  return files;
}

std::vector<std::string> source_files(Section& in, const YAML::Node& node, const std::string& name, const fs::path& directory,
                                      const std::vector<MixEntry>* mix) {
  const std::optional<YAML::Node> labels = in.find("labels");
  if (mix && (labels || !in.find("paths")))
    return labelled_files(in, node, labels ? texts(in, *labels, "labels", "labels of the mix") : std::vector<std::string>{name}, *mix);
  if (labels) in.refuse(*labels, "labels", "labels without a mix", "paths");
  std::vector<std::string> out;
  for (const std::string& path : texts(in, in.at("paths"), "paths", "at least one file or pattern")) {
    const std::vector<std::string> files = expand((directory / path).string());
    out.insert(out.end(), files.begin(), files.end());
  }
  return out;
}

MixtureSource parse_source(const YAML::Node& node, const std::string& where, const fs::path& directory, const std::vector<MixEntry>* mix) {
  Section in(node, where);
  MixtureSource source{.name = in.text("name", "source_name"), .paths = {}};
  source.ratio = in.number<double>(in.at("ratio", "target_ratio"), "ratio", 0, 1);
  if (source.ratio == 0) in.refuse(node, "ratio", "0", "a number above 0; leave the source out");
  if (const auto value = in.find("max_repetition", "max_repetition_ratio"))
    source.max_repetition = in.number<double>(*value, "max_repetition", 1, 1e9);
  if (const auto value = in.find("max_source_fraction")) source.max_source_fraction = in.number<double>(*value, "max_source_fraction", 0, 1);
  if (source.max_source_fraction == 0) in.refuse(node, "max_source_fraction", "0", "a number above 0");
  source.paths = source_files(in, node, source.name, directory, mix);
  in.finish();
  return source;
}

YAML::Node load(const std::string& text, const std::string& where) {
  try {
    return YAML::Load(text);
  } catch (const YAML::Exception& error) {
    throw ConfigError(fmt::format("{}:{}: not valid YAML: {}", where, error.mark.line + 1, error.msg));
  }
}

}  // namespace

MixtureSpec parse_mixture_spec(const std::string& text, const std::string& where, const std::string& directory, const std::vector<MixEntry>* mix) {
  const YAML::Node root = load(text, where);
  Section in(root, where);
  MixtureSpec spec;
  const auto whole = [&](const char* key, const char* other) { return in.number<int64_t>(in.at(key, other), key, 1, kMostTokens); };
  spec.requested_tokens = whole("requested_tokens", nullptr);
  spec.sequence_length = whole("sequence_length", nullptr);
  spec.batch_tokens = whole("batch_tokens", "global_batch_size");
  if (const auto value = in.find("seed")) spec.seed = in.number<uint64_t>(*value, "seed", 0, 0x1p64);
  if (in.find("dialect")) {
    const std::string name = in.text("dialect");
    if (name != name_of(MixtureDialect::kSampled) && name != name_of(MixtureDialect::kOlmoCore))
      in.refuse(in.at("dialect"), "dialect", name, "sampled or olmo-core");
    spec.dialect = name == name_of(MixtureDialect::kOlmoCore) ? MixtureDialect::kOlmoCore : MixtureDialect::kSampled;
  }
  const YAML::Node sources = in.at("sources");
  if (!sources.IsSequence() || sources.size() == 0) in.refuse(sources, "sources", shown(sources), "a list of at least one source");
  std::set<std::string> names;
  for (const YAML::Node& node : sources) {
    spec.sources.push_back(parse_source(node, where, directory, mix));
    // In OLMo-core the last source of a name replaces the earlier ones; nobody can want that.
    if (!names.insert(spec.sources.back().name).second) in.refuse(node, "name", spec.sources.back().name + " a second time", "another name");
  }
  in.finish();
  return spec;
}

MixtureSpec read_mixture_spec(const std::string& path, const std::vector<MixEntry>* mix) {
  const fs::path directory = fs::path(path).parent_path();
  return parse_mixture_spec(read_file(path), path, directory.string(), mix);
}

}  // namespace dz::data
