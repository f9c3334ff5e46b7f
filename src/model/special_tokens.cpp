#include "model/special_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace dz::model {
namespace {

using Json = nlohmann::json;

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

std::vector<int32_t> ids_of(const Json* value) {
  std::vector<int32_t> ids;
  const auto add = [&](const Json& id) {
    if (id.is_number_unsigned() && id.get<uint64_t>() <= INT32_MAX) ids.push_back(id.get<int32_t>());
  };
  if (value == nullptr) return ids;
  if (value->is_array()) {
    for (const Json& id : *value) add(id);
  } else {
    add(*value);
  }
  return ids;
}

}  // namespace

SpecialTokens special_tokens_of_config(const std::string& config_json) {
  const Json config = Json::parse(config_json, nullptr, false);
  SpecialTokens tokens{.eos_key = "config.json: eos_token_id", .pad_key = "config.json: pad_token_id", .eos = ids_of(member(config, "eos_token_id"))};
  const std::vector<int32_t> pad = ids_of(member(config, "pad_token_id"));
  if (pad.size() == 1) tokens.pad = pad[0];
  return tokens;
}

std::vector<std::string> token_differences(const SpecialTokens& claimed, const std::function<std::string(const std::string& name)>& read) {
  const auto json_of = [&](const char* name) { return Json::parse(read(name), nullptr, false); };
  const Json tokenizer = json_of("tokenizer.json"), map = json_of("special_tokens_map.json"), settings = json_of("tokenizer_config.json");
  std::vector<std::string> differences;
  const auto compare = [&](const char* token, const std::string& key, const std::vector<int32_t>& ids) {
    const std::optional<std::string> text = text_of(map, token) ? text_of(map, token) : text_of(settings, token);
    const std::optional<int64_t> id = text ? id_of(tokenizer, *text) : std::nullopt;
    if (id && !ids.empty() && std::ranges::find(ids, *id) == ids.end())
      differences.push_back(fmt::format("{} {}, but the tokenizer's {} {} is {}", key, fmt::join(ids, " and "), token, *text, *id));
  };
  compare("eos_token", claimed.eos_key, claimed.eos);
  compare("pad_token", claimed.pad_key, claimed.pad ? std::vector<int32_t>{*claimed.pad} : std::vector<int32_t>{});
  return differences;
}

}  // namespace dz::model
