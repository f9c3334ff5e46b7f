#include "data/loader_state_json.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace dz::data {
namespace {

using Json = nlohmann::json;
constexpr size_t kMostBytes = 1 << 24;  // 2^16 workers with room to spare

// Arrays and objects by their kind alone: printing one that is nested a million deep would take the stack.
std::string shown(const Json& value) {
  if (value.is_structured()) return std::string("an ") + value.type_name();
  const std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= 80 ? text : text.substr(0, 77) + "...";
}

}  // namespace

struct StateJson::Fields {
  Json root;
};

StateJson::StateJson(const LoaderStateText& text) : where_(text.where), fields_(std::make_unique<Fields>()) {
  if (text.json.size() > kMostBytes)
    throw DataError(
        Complaint{.where = where_, .found = fmt::format("{} bytes", text.json.size()), .expected = "a loader state of at most 16 MiB", .hint = ""});
  fields_->root = Json::parse(text.json, nullptr, false);
  if (!fields_->root.is_object())
    throw DataError(Complaint{.where = where_,
                              .found = fields_->root.is_discarded() ? "no JSON" : shown(fields_->root),
                              .expected = "a loader state: one JSON object",
                              .hint = ""});
}

StateJson::~StateJson() = default;

void StateJson::refuse(const std::string& key, const std::string& found, const std::string& expected) const {
  throw DataError(Complaint{.where = where_ + ": " + key, .found = found, .expected = expected, .hint = ""});
}

void StateJson::refuse_run(const std::string& key, const std::string& found, const std::string& expected, const std::string& hint) const {
  throw ConfigError(Complaint{.where = where_ + ": " + key, .found = found, .expected = expected, .hint = hint});
}

void StateJson::require_same(const std::string& key, const std::string& found, const std::string& expected, const std::string& hint) const {
  if (found != expected) refuse_run(key, found, expected, hint);
}

namespace {

const Json& field(const StateJson& state, const Json& root, const std::string& key) {
  const auto found = root.find(key);
  if (found == root.end()) state.refuse(key, "no such key", "a loader state with it");
  return *found;
}

int64_t to_integer(const StateJson& state, const std::string& key, const Json& value) {
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() || value.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()));
  if (!fits) state.refuse(key, shown(value), "a whole number below 2^63");
  return value.get<int64_t>();
}

}  // namespace

int64_t StateJson::integer(const std::string& key) const { return to_integer(*this, key, field(*this, fields_->root, key)); }

uint64_t StateJson::natural(const std::string& key) const {
  const Json& value = field(*this, fields_->root, key);
  if (!value.is_number_unsigned()) refuse(key, shown(value), "a natural number below 2^64");
  return value.get<uint64_t>();
}

std::string StateJson::text(const std::string& key) const {
  const Json& value = field(*this, fields_->root, key);
  if (!value.is_string()) refuse(key, shown(value), "a text");
  return value.get<std::string>();
}

bool StateJson::is_null(const std::string& key) const { return field(*this, fields_->root, key).is_null(); }

std::vector<int64_t> StateJson::numbered(const std::string& key) const {
  const Json& value = field(*this, fields_->root, key);
  if (!value.is_object()) refuse(key, shown(value), "an object of numbers by worker");
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < value.size(); ++i) {
    const std::string name = std::to_string(i);
    const auto found = value.find(name);
    if (found == value.end()) refuse(key, shown(value), fmt::format("the keys 0 to {}", value.size() - 1));
    numbers.push_back(to_integer(*this, key + "." + name, *found));
  }
  return numbers;
}

}  // namespace dz::data
