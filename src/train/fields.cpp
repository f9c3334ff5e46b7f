#include "train/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace dz::train {
namespace {

bool is_alpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_plain(char c) { return is_alpha(c) || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.' || c == '/'; }

// A string that YAML would read as something else, or not at all, is put in double quotes with its escapes.
std::string yaml_string(const std::string& text) {
  constexpr std::string_view kWords[] = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"};
  const bool word = std::find(std::begin(kWords), std::end(kWords), text) != std::end(kWords);
  if (!text.empty() && (is_alpha(text[0]) || text[0] == '/') && !word && std::all_of(text.begin(), text.end(), is_plain)) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string number(double value) { return fmt::format("{}", value); }

template <class Values, class Format>
std::string list(const Values& values, Format format) {
  std::string text;
  for (const auto& value : values) text += (text.empty() ? "" : ", ") + format(value);
  return "[" + text + "]";
}

}  // namespace

void Flattener::enter(const char* key, const char*) { path_.emplace_back(path_.empty() ? key : path_.back() + "." + key); }
void Flattener::leave() { path_.pop_back(); }

void Flattener::put(const Field& field, std::string text) {
  std::string path = path_.empty() ? field.key : path_.back() + "." + field.key;
  if (for_identity_) {
    const auto usual = defaults_.find(path);
    if (field.is_path || (field.added && usual != defaults_.end() && usual->second == text)) return;
  }
  flat_.emplace_back(std::move(path), std::move(text));
}

void Flattener::field(const Field& field, int64_t& value) { put(field, std::to_string(value)); }
void Flattener::field(const Field& field, uint64_t& value) { put(field, std::to_string(value)); }
void Flattener::field(const Field& field, double& value) { put(field, number(value)); }
void Flattener::field(const Field& field, bool& value) { put(field, value ? "true" : "false"); }
void Flattener::field(const Field& field, std::string& value) { put(field, yaml_string(value)); }
void Flattener::field(const Field& field, std::vector<double>& value) { put(field, list(value, number)); }
void Flattener::field(const Field& field, std::vector<std::string>& value) { put(field, list(value, yaml_string)); }

void PathMaker::field(const Field& field, std::string& value) {
  if (field.is_path && !value.empty()) value = std::filesystem::absolute(value).lexically_normal().string();
}

void PathMaker::field(const Field& field, std::vector<std::string>& value) {
  for (std::string& item : value) this->field(field, item);
}

void HelpPrinter::enter(const char* key, const char* help) {
  text_ += fmt::format("{:{}}{}:{:{}} # {}\n", "", 2 * depth_, key, "", std::max(1, 34 - 2 * depth_ - static_cast<int>(std::string_view(key).size())),
                       help);
  ++depth_;
}

void HelpPrinter::leave() { --depth_; }

template <class Value>
void HelpPrinter::print(const Field& field, Value& value) {
  Flattener one;
  one.field(field, value);
  const std::string line = fmt::format("{:{}}{}: {}", "", 2 * depth_, field.key, field.required ? "(required)" : one.take().front().second);
  text_ += fmt::format("{:<36}# {}", line, field.help);
  if (!field.allowed.empty()) text_ += fmt::format(" ({})", fmt::join(field.allowed, " | "));
  text_ += "\n";
}

template void HelpPrinter::print(const Field&, int64_t&);
template void HelpPrinter::print(const Field&, uint64_t&);
template void HelpPrinter::print(const Field&, double&);
template void HelpPrinter::print(const Field&, bool&);
template void HelpPrinter::print(const Field&, std::string&);
template void HelpPrinter::print(const Field&, std::vector<double>&);
template void HelpPrinter::print(const Field&, std::vector<std::string>&);

std::string to_yaml(const FlatConfig& flat) {
  std::string text;
  std::vector<std::string> open;
  for (const auto& [path, value] : flat) {
    std::vector<std::string> parts;
    for (size_t begin = 0; begin <= path.size();) {
      const size_t dot = std::min(path.find('.', begin), path.size());
      parts.push_back(path.substr(begin, dot - begin));
      begin = dot + 1;
    }
    size_t shared = 0;
    while (shared < open.size() && shared + 1 < parts.size() && open[shared] == parts[shared]) ++shared;
    open.resize(shared);
    for (; open.size() + 1 < parts.size(); open.push_back(parts[open.size()])) text += std::string(2 * open.size(), ' ') + parts[open.size()] + ":\n";
    text += std::string(2 * open.size(), ' ') + parts.back() + ": " + value + "\n";
  }
  return text;
}

std::string nearest(std::string_view name, const std::vector<std::string>& known) {
  std::string best;
  size_t best_distance = std::max<size_t>(3, name.size() / 2 + 1);
  for (const std::string& candidate : known) {
    std::vector<size_t> row(candidate.size() + 1);
    for (size_t j = 0; j <= candidate.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= name.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j <= candidate.size(); ++j) {
        const size_t replace = diagonal + (name[i - 1] == candidate[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({replace, row[j] + 1, row[j - 1] + 1});
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

}  // namespace dz::train
