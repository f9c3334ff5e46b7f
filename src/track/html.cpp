#include "track/html.h"

#include <array>
#include <cstdint>

#include "base/check.h"

namespace dz::track {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Length of the well-formed sequence that starts at text[0], or 0. The second byte's range excludes overlong forms, surrogates and
// everything past U+10FFFF (Unicode standard, table 3-7).
size_t sequence_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const auto in = [&](size_t i, int low, int high) { return i < text.size() && byte(i) >= low && byte(i) <= high; };
  const int first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return in(1, 0x80, 0xBF) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const int low = first == 0xE0 ? 0xA0 : 0x80;
    const int high = first == 0xED ? 0x9F : 0xBF;
    return in(1, low, high) && in(2, 0x80, 0xBF) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const int low = first == 0xF0 ? 0x90 : 0x80;
    const int high = first == 0xF4 ? 0x8F : 0xBF;
    return in(1, low, high) && in(2, 0x80, 0xBF) && in(3, 0x80, 0xBF) ? 4 : 0;
  }
  return 0;
}

bool is_forbidden_control(char c) {
  const auto byte = static_cast<uint8_t>(c);
  return (byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7F;
}

}  // namespace

std::string clean_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = sequence_length(text);
    if (length == 0 || (length == 1 && is_forbidden_control(text[0]))) {
      out += kReplacement;
      text.remove_prefix(1);
    } else {
      out += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return out;
}

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : clean_utf8(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string escape_json_for_script(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

std::string fill(std::string_view page, const std::map<std::string, std::string, std::less<>>& values) {
  std::string out;
  for (;;) {
    const size_t open = page.find("{{");
    if (open == std::string_view::npos) break;
    const size_t close = page.find("}}", open);
    DZ_CHECK(close != std::string_view::npos, "open", open);
    const std::string_view name = page.substr(open + 2, close - open - 2);
    const auto value = values.find(name);
    DZ_CHECK(value != values.end(), "name", name);
    out += page.substr(0, open);
    out += value->second;
    page.remove_prefix(close + 2);
  }
  out += page;
  return out;
}

}  // namespace dz::track
