#include "eval/certificates.h"

#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>
#include <string_view>

namespace dz::eval {
namespace {

using Json = nlohmann::json;

std::string text_of(const Json& json, const char* key) {
  const auto value = json.find(key);
  if (value == json.end() || value->is_null()) return "";
  return value->is_string() ? value->get<std::string>() : value->dump();
}

// One line, or nothing when it is not the line of a step.
std::optional<std::pair<int64_t, Certificate>> parse_line(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) return std::nullopt;
  Certificate certificate{text_of(json, "batch_digest"), text_of(json, "loss_hex"),          text_of(json, "grad_norm_hex"),
                          text_of(json, "lr"),           text_of(json, "skipped") == "true", {}};
  if (const auto digest = json.find("digest"); digest != json.end() && digest->is_object())
    certificate.digest = DigestText{text_of(*digest, "parameters"), text_of(*digest, "moments"), text_of(*digest, "trainer")};
  return std::pair(json["step"].get<int64_t>(), certificate);
}

using Keys = std::map<std::string, std::string>;

void flatten(const YAML::Node& node, const std::string& prefix, Keys& keys) {
  if (node.IsMap()) {
    for (const auto& entry : node) flatten(entry.second, (prefix.empty() ? "" : prefix + ".") + entry.first.Scalar(), keys);
  } else if (node.IsSequence()) {
    for (size_t i = 0; i < node.size(); ++i) flatten(node[i], prefix + "[" + std::to_string(i) + "]", keys);
  } else {
    keys[prefix] = node.IsScalar() ? node.Scalar() : "null";
  }
}

Keys read_yaml(const fs::path& path) {
  Keys keys;
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return keys;
  try {
    flatten(YAML::Load(read_file(path)), "", keys);
  } catch (const YAML::Exception&) {
    keys.clear();
  }
  return keys;
}

}  // namespace

CertificateLog read_certificates(const fs::path& run) {
  CertificateLog log;
  const fs::path path = run / "metrics.jsonl";
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) {
    log.notes.push_back(path.string() + ": missing");
    return log;
  }
  const std::string text = read_file(path);
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    const std::string_view line = std::string_view(text).substr(begin, end == std::string::npos ? end : end - begin);
    ++number;
    if (auto entry = parse_line(line)) {
      log.steps.insert_or_assign(entry->first, std::move(entry->second));
    } else if (!line.empty()) {
      log.notes.push_back(path.string() + ":" + std::to_string(number) + (end == std::string::npos ? ": the last line is torn" : ": not readable") +
                          ", left out");
    }
    begin = end == std::string::npos ? text.size() : end + 1;
  }
  return log;
}

std::vector<SettingDifference> yaml_differences(const fs::path& a, const fs::path& b) {
  const Keys left = read_yaml(a), right = read_yaml(b);
  const auto value = [](const Keys& keys, const std::string& key) {
    const auto place = keys.find(key);
    return place == keys.end() ? std::string() : place->second;
  };
  Keys all = left;
  all.insert(right.begin(), right.end());
  std::vector<SettingDifference> differences;
  for (const auto& [key, unused] : all)
    if (value(left, key) != value(right, key) || left.contains(key) != right.contains(key))
      differences.push_back({key, value(left, key), value(right, key)});
  return differences;
}

std::string environment_value(const fs::path& run, const std::string& key) {
  const fs::path path = run / "environment.json";
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return "";
  const Json json = Json::parse(read_file(path), nullptr, false);
  return json.is_object() ? text_of(json, key.c_str()) : "";
}

}  // namespace dz::eval
