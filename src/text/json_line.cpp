#include "text/json_line.h"

#include <simdjson.h>

#include <optional>
#include <string_view>

#include "base/error.h"
#include "text/unicode.h"

namespace dz::text {
namespace {

// The number behind \u at `at`, if four hexadecimal digits are there.
std::optional<uint32_t> unicode_escape(std::string_view line, size_t at) {
  if (at + 6 > line.size() || line[at] != '\\' || line[at + 1] != 'u') return std::nullopt;
  uint32_t value = 0;
  for (size_t i = at + 2; i < at + 6; ++i) {
    const char c = static_cast<char>(line[i] | 0x20);
    if (c >= '0' && c <= '9') {
      value = value * 16 + static_cast<uint32_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      value = value * 16 + static_cast<uint32_t>(c - 'a' + 10);
    } else {
      return std::nullopt;
    }
  }
  return value;
}

// Writers that cut strings in the middle of a UTF-16 pair leave such escapes; the parser would refuse the whole line.
int64_t replace_half_pairs(std::string& line) {
  int64_t replaced = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\') continue;
    const std::optional<uint32_t> value = unicode_escape(line, i);
    if (value && *value >= 0xD800 && *value < 0xE000) {
      const std::optional<uint32_t> next = unicode_escape(line, i + 6);
      if (*value < 0xDC00 && next && *next >= 0xDC00 && *next < 0xE000) {
        i += 11;
        continue;
      }
      line.replace(i + 2, 4, "FFFD");
      ++replaced;
    }
    i += value ? 5 : 1;
  }
  return replaced;
}

}  // namespace

struct JsonLineParser::State {
  std::string field;
  simdjson::dom::parser parser;
};

JsonLineParser::JsonLineParser(std::string field) : state_(std::make_unique<State>()) { state_->field = std::move(field); }
JsonLineParser::~JsonLineParser() = default;

std::string JsonLineParser::text(std::string line, const std::string& where, int64_t& replaced) {
  replaced = replace_invalid_utf8(line);
  if (line.find("\\u") != std::string::npos) replaced += replace_half_pairs(line);
  line.reserve(line.size() + simdjson::SIMDJSON_PADDING);
  simdjson::dom::element root;
  if (const auto error = state_->parser.parse(line.data(), line.size(), false).get(root))
    throw DataError(Complaint{.where = where, .found = simdjson::error_message(error), .expected = "one JSON object a line", .hint = ""});
  simdjson::dom::object object;
  if (root.get(object)) throw DataError(Complaint{.where = where, .found = "no JSON object", .expected = "one JSON object a line", .hint = ""});
  std::string_view value;
  if (object[state_->field].get(value)) {
    throw DataError(Complaint{.where = where + ": " + state_->field,
                              .found = object[state_->field].error() ? "no such field" : "not a string",
                              .expected = "the text of the document",
                              .hint = "name another field with --field"});
  }
  return std::string(value);
}

}  // namespace dz::text
