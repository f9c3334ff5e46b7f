#include "train/yaml_reader.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "base/error.h"

namespace dz::train {
namespace {

template <class Number>
bool parse_number(const std::string& text, Number& value) {
  const char* begin = text.data() + (!text.empty() && text[0] == '+' ? 1 : 0);
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

template <class Number>
std::string expected_number(const Field& field, const char* kind, Number found = Number{0}) {
  // A bound that only keeps numbers countable is worth a word only to who passed it.
  const bool low = std::isfinite(field.least), high = field.most < 1e15 || static_cast<double>(found) > field.most;
  if (low && high) return fmt::format("{} from {} to {}", kind, field.least, field.most);
  if (low) return fmt::format("{} of at least {}", kind, field.least);
  if (high) return fmt::format("{} of at most {}", kind, field.most);
  return kind;
}

template <class Number>
bool in_range(const Field& field, Number value) {
  const double x = static_cast<double>(value);
  return std::isfinite(x) && x >= field.least && x <= field.most;
}

std::string shown(const YAML::Node& node) {
  if (node.IsNull()) return "nothing";
  if (node.IsMap()) return "a map";
  YAML::Emitter out;
  out << YAML::Flow << node;
  const std::string text = out.c_str();
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

}  // namespace

struct YamlReader::Source {
  YAML::Node root;
  std::map<std::string, YAML::Node> nodes;  // every key that was read, by path
  std::set<std::string> from_command_line;
};

struct YamlReader::Level {
  std::string path;
  YAML::Node node;
  std::vector<std::string> asked;  // keys that a field or section asked for
};

YamlReader::YamlReader(const std::string& text, std::string name, std::filesystem::path base)
    : source_(std::make_unique<Source>()), name_(std::move(name)), base_(std::move(base)) {
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() > 1) complain("", std::to_string(documents.size()) + " YAML documents", "one");
    if (!documents.empty()) source_->root.reset(documents[0]);
  } catch (const YAML::Exception& error) {
    throw ConfigError(fmt::format("{}:{}: not valid YAML: {}", name_, error.mark.line + 1, error.msg));
  }
  if (source_->root.IsNull()) source_->root = YAML::Node(YAML::NodeType::Map);
  if (!source_->root.IsMap()) complain("", shown(source_->root), "a map with the sections recipe, topology and run");
  levels_.push_back({"", source_->root, {}});
}

YamlReader::~YamlReader() = default;

void YamlReader::set(const std::string& assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw UsageError(
        Complaint{.where = "--set", .found = "'" + assignment + "'", .expected = "section.key=value, as in recipe.optimizer.lr=3e-4", .hint = ""});
  }
  const std::string path = assignment.substr(0, equals);
  YAML::Node value;
  try {
    value = YAML::Load(assignment.substr(equals + 1));
  } catch (const YAML::Exception& error) {
    throw UsageError(fmt::format("--set {}: the value is not valid YAML: {}", path, error.msg));
  }
  YAML::Node node = source_->root;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t dot = std::min(path.find('.', begin), path.size());
    const std::string key = path.substr(begin, dot - begin);
    if (key.empty() || !node.IsMap()) {
      throw UsageError(Complaint{.where = "--set " + path,
                                 .found = key.empty() ? "an empty name between dots" : "a key inside a value",
                                 .expected = "section.key=value",
                                 .hint = ""});
    }
    if (dot == path.size()) {
      node[key] = value;
    } else {
      if (!node[key].IsDefined() || node[key].IsNull()) node[key] = YAML::Node(YAML::NodeType::Map);
      const YAML::Node next = node[key];
      node.reset(next);
    }
    begin = dot + 1;
  }
  source_->from_command_line.insert(path);
}

std::string YamlReader::path_of(const char* key) const { return levels_.back().path.empty() ? key : levels_.back().path + "." + key; }

std::string YamlReader::resolved(const std::string& path, const std::string& value) const {
  return source_->from_command_line.contains(path) ? value : (base_ / value).lexically_normal().string();
}

std::string YamlReader::where(const std::string& path) const {
  if (source_->from_command_line.contains(path)) return "--set " + path;
  const auto node = source_->nodes.find(path);
  const int line = node == source_->nodes.end() ? -1 : node->second.Mark().line;
  std::string text = line < 0 ? name_ : fmt::format("{}:{}", name_, line + 1);
  return path.empty() ? text : text + ": " + path;
}

void YamlReader::complain(const std::string& path, const std::string& found, const std::string& expected) const {
  throw ConfigError(Complaint{.where = where(path), .found = found, .expected = expected, .hint = ""});
}

void YamlReader::enter(const char* key, const char* help) { enter(key, help, nullptr); }

void YamlReader::enter(const char* key, const char*, const char* brief) {
  Level& level = levels_.back();
  const std::string path = path_of(key);
  level.asked.emplace_back(key);
  known_.push_back(path);
  YAML::Node node;
  if (level.node.IsMap()) {
    int times = 0;
    for (const auto& entry : level.node) {
      if (entry.first.Scalar() != key) continue;
      node.reset(entry.second);
      source_->nodes[path].reset(entry.first);
      if (++times == 2) complain(path, "the section twice", "it once");
    }
    if (brief != nullptr && node.IsScalar()) {
      YAML::Node section(YAML::NodeType::Map);
      section[brief] = node;
      node.reset(section);
    }
    if (times > 0 && !node.IsMap() && !node.IsNull()) complain(path, shown(node), "a map of keys and values");
  }
  levels_.push_back({path, node, {}});
}

void YamlReader::leave() {
  complain_unknown(levels_.back());
  levels_.pop_back();
}

void YamlReader::finish() { complain_unknown(levels_.back()); }

void YamlReader::complain_unknown(const Level& level) const {
  if (!level.node.IsMap()) return;
  for (const auto& entry : level.node) {
    const std::string& key = entry.first.Scalar();
    if (std::find(level.asked.begin(), level.asked.end(), key) != level.asked.end()) continue;
    const std::string path = level.path.empty() ? key : level.path + "." + key;
    const int line = entry.first.Mark().line;
    std::string message = line < 0 || source_->from_command_line.contains(path) ? "--set " + path : fmt::format("{}:{}: {}", name_, line + 1, path);
    message += ": unknown key";
    std::string near = nearest(key, level.asked);
    if (!near.empty()) message += "\n  did you mean: " + (level.path.empty() ? near : level.path + "." + near);
    if (near.empty()) message += fmt::format("\n  known here: {}", fmt::join(level.asked, ", "));
    throw ConfigError(message);
  }
}

const void* YamlReader::find(const Field& field) {
  Level& level = levels_.back();
  const std::string path = path_of(field.key);
  level.asked.emplace_back(field.key);
  known_.push_back(path);
  bool found = false;
  if (level.node.IsMap()) {
    for (const auto& entry : level.node) {
      if (entry.first.Scalar() != field.key) continue;
      source_->nodes[path].reset(found ? entry.first : entry.second);
      if (found) complain(path, "the key twice", "it once");
      found = true;
    }
  }
  if (!found) {
    if (field.required) complain(path, "nothing", fmt::format("a value: {}", field.help));
    return nullptr;
  }
  given_.insert(path);
  return &source_->nodes[path];
}

void YamlReader::field(const Field& field, int64_t& value) {
  const auto* node = static_cast<const YAML::Node*>(find(field));
  if (!node) return;
  if (!node->IsScalar() || !parse_number(node->Scalar(), value) || !in_range(field, value)) {
    complain(path_of(field.key), shown(*node), expected_number<int64_t>(field, "an integer", value));
  }
}

void YamlReader::field(const Field& field, uint64_t& value) {
  const auto* node = static_cast<const YAML::Node*>(find(field));
  if (!node) return;
  if (!node->IsScalar() || !parse_number(node->Scalar(), value)) complain(path_of(field.key), shown(*node), "an integer from 0 to 2^64 - 1");
}

void YamlReader::field(const Field& field, double& value) {
  const auto* node = static_cast<const YAML::Node*>(find(field));
  if (!node) return;
  if (!node->IsScalar() || !parse_number(node->Scalar(), value) || !in_range(field, value)) {
    complain(path_of(field.key), shown(*node), expected_number<double>(field, "a number"));
  }
}

void YamlReader::field(const Field& field, bool& value) {
  const auto* node = static_cast<const YAML::Node*>(find(field));
  if (!node) return;
  if (!node->IsScalar() || (node->Scalar() != "true" && node->Scalar() != "false")) complain(path_of(field.key), shown(*node), "true or false");
  value = node->Scalar() == "true";
}

void YamlReader::field(const Field& field, std::string& value) {
  const auto* node = static_cast<const YAML::Node*>(find(field));
  if (!node) return;
  if (!node->IsScalar()) complain(path_of(field.key), shown(*node), "a string");
  value = node->Scalar();
  if (!field.allowed.empty() && std::find(field.allowed.begin(), field.allowed.end(), value) == field.allowed.end()) {
    complain(path_of(field.key), "'" + value + "'", fmt::format("one of {}", fmt::join(field.allowed, ", ")));
  }
  if (field.is_path && !value.empty()) value = resolved(path_of(field.key), value);
}

void YamlReader::field(const Field& field, std::vector<double>& value) {
  const auto* node = static_cast<const YAML::Node*>(find(field));
  if (!node) return;
  const std::string expected = "a list, each " + expected_number<double>(field, "a number");
  if (!node->IsSequence()) complain(path_of(field.key), shown(*node), expected);
  value.clear();
  for (const YAML::Node& item : *node) {
    double number = 0;
    if (!item.IsScalar() || !parse_number(item.Scalar(), number) || !in_range(field, number)) complain(path_of(field.key), shown(*node), expected);
    value.push_back(number);
  }
}

void YamlReader::field(const Field& field, std::vector<std::string>& value) {
  const auto* node = static_cast<const YAML::Node*>(find(field));
  if (!node) return;
  if (!node->IsSequence()) complain(path_of(field.key), shown(*node), "a list of strings");
  value.clear();
  for (const YAML::Node& item : *node) {
    if (!item.IsScalar()) complain(path_of(field.key), shown(*node), "a list of strings");
    if (field.is_path && item.Scalar().empty()) complain(path_of(field.key), "an empty path in " + shown(*node), "paths");
    value.push_back(field.is_path ? resolved(path_of(field.key), item.Scalar()) : item.Scalar());
  }
}

}  // namespace dz::train
