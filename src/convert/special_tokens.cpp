#include "convert/special_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

namespace dz::convert {
namespace {

using Json = nlohmann::json;

Json file_of(const Source& source, const std::string& name) {
  const auto file = std::ranges::find(source.side_files, name, &SideFile::name);
  return file == source.side_files.end() ? Json() : Json::parse(file->read(), nullptr, false);
}

const Json* member(const Json& json, const char* key) {
  if (!json.is_object()) return nullptr;
  const auto found = json.find(key);
  return found == json.end() ? nullptr : &*found;
}

// "eos_token": "<|endoftext|>", or {"content": "<|endoftext|>", ...}.
std::optional<std::string> text_of(const Json& settings, const char* key) {
  const Json* token = member(settings, key);
  if (token != nullptr && token->is_object()) token = member(*token, "content");
  return token != nullptr && token->is_string() ? std::optional(token->get<std::string>()) : std::nullopt;
}

std::optional<int64_t> id_of(const Json& tokenizer, const std::string& text) {
  const Json* added = member(tokenizer, "added_tokens");
  if (added == nullptr || !added->is_array()) return std::nullopt;
  for (const Json& token : *added) {
    const Json *content = member(token, "content"), *id = member(token, "id");
    if (content != nullptr && id != nullptr && *content == text && id->is_number_unsigned()) return id->get<int64_t>();
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> token_differences(const Source& source) {
  std::vector<std::string> differences;
  const Json tokenizer = file_of(source, "tokenizer.json");
  const Json map = file_of(source, "special_tokens_map.json"), settings = file_of(source, "tokenizer_config.json");
  const auto compare = [&](const char* key, const char* id_key, const std::vector<int32_t>& ids) {
    const std::optional<std::string> text = text_of(map, key) ? text_of(map, key) : text_of(settings, key);
    const std::optional<int64_t> id = text ? id_of(tokenizer, *text) : std::nullopt;
    if (id && !ids.empty() && std::ranges::find(ids, *id) == ids.end())
      differences.push_back(fmt::format("config.json: {} {}, but the tokenizer's {} {} is {}", id_key, fmt::join(ids, " and "), key, *text, *id));
  };
  compare("eos_token", "eos_token_id", source.config.eos_token_ids);
  const auto& pad = source.config.pad_token_id;
  compare("pad_token", "pad_token_id", pad ? std::vector<int32_t>{*pad} : std::vector<int32_t>{});
  return differences;
}

}  // namespace dz::convert
