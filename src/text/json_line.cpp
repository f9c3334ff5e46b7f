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

using simdjson::dom::element;

// The last one of that name, as Python's parser has it.
std::optional<element> member(const element& parent, std::string_view name) {
  simdjson::dom::object object;
  if (parent.get(object)) return std::nullopt;
  std::optional<element> found;
  for (const auto field : object)
    if (field.key == name) found = field.value;
  return found;
}

// A key of the very name first, then each way to cut it at a dot.
std::optional<element> find(const element& parent, std::string_view path) {
  if (const std::optional<element> found = member(parent, path)) return found;
  for (size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.', dot + 1)) {
    const std::optional<element> inner = member(parent, path.substr(0, dot));
    const std::optional<element> found = inner ? find(*inner, path.substr(dot + 1)) : std::nullopt;
    if (found) return found;
  }
  return std::nullopt;
}

std::string id_text(const element& value) {
  std::string_view text;
  if (!value.get(text)) return std::string(text);
  return value.is_null() ? "" : simdjson::minify(value);
}

// The parser's words without the full stop, to stand inside a sentence.
std::string phrase(simdjson::error_code error) {
  std::string words = simdjson::error_message(error);
  while (words.ends_with('.')) words.pop_back();
  return words;
}

}  // namespace

struct JsonLineParser::State {
  Fields fields;
  simdjson::dom::parser parser;
};

JsonLineParser::JsonLineParser(Fields fields) : state_(std::make_unique<State>()) { state_->fields = std::move(fields); }
JsonLineParser::~JsonLineParser() = default;

void JsonLineParser::parse(std::string line, const std::string& where, std::string& text, std::string& id, int64_t& replaced) {
  replaced = replace_invalid_utf8(line);
  if (line.find("\\u") != std::string::npos) replaced += replace_half_pairs(line);
  line.reserve(line.size() + simdjson::SIMDJSON_PADDING);
  element root;
  if (const auto error = state_->parser.parse(line.data(), line.size(), false).get(root))
    throw DataError(Complaint{.where = where, .found = phrase(error), .expected = "one JSON object a line", .hint = ""});
  if (!root.is_object()) throw DataError(Complaint{.where = where, .found = "no JSON object", .expected = "one JSON object a line", .hint = ""});
  const std::optional<element> value = find(root, state_->fields.field);
  std::string_view found;
  if (!value || value->get(found)) {
    throw DataError(Complaint{.where = where + ": " + state_->fields.field,
                              .found = value ? "not a string" : "no such field",
                              .expected = "the text of the document",
                              .hint = state_->fields.hint});
  }
  const std::optional<element> name = find(root, state_->fields.id_field);
  id = name ? id_text(*name) : "";
  text.assign(found);
}

}  // namespace dz::text
