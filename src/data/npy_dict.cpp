#include "data/npy_dict.h"

#include <fmt/format.h>

#include "base/error.h"

namespace dz::data {
namespace {

constexpr size_t kMostDimensions = 64;  // NumPy's own limit

class DictParser {
 public:
  DictParser(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  NpyHeader parse() {
    NpyHeader header;
    bool descr = false, order = false, shape = false;
    const auto once = [&](bool& seen, const std::string& key) {
      if (seen) fail("the key '" + key + "' twice");
      seen = true;
    };
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr") {
        once(descr, key);
        header.dtype = canonical(string());
      } else if (key == "fortran_order") {
        once(order, key);
        header.fortran_order = boolean();
      } else if (key == "shape") {
        once(shape, key);
        header.shape = tuple();
      } else {
        fail("the key '" + key + "'");
      }
      if (!accept(',') && peek() != '}') fail("no comma after a value");
    }
    skip_space();
    if (at_ != text_.size()) fail("text after the dict");
    if (!descr || !order || !shape) fail("a dict without all three keys");
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& found) const {
    throw DataError(Complaint{.where = where_,
                              .found = fmt::format("a .npy header with {} at character {}", found.substr(0, 80), at_),
                              .expected = "a dict of descr (a string), fortran_order and shape",
                              .hint = ""});
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r')) ++at_;
  }
  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("no '{}'", c));
  }
  // No dtype that we read needs an escape.
  std::string string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail("no string");
    const size_t first = ++at_;
    while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\\') ++at_;
    if (at_ >= text_.size() || text_[at_] != quote) fail("an unfinished string");
    return std::string(text_.substr(first, at_++ - first));
  }
  bool boolean() {
    skip_space();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return value;
    }
    fail("neither True nor False");
  }
  int64_t integer() {
    int64_t value = 0;
    const char first = peek();
    if (first < '0' || first > '9') fail("no number");
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      if (value > (int64_t{1} << 58)) fail("a number that is too large");
      value = value * 10 + (text_[at_] - '0');
    }
    return value;
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> values;
    expect('(');
    bool comma = true;
    while (!accept(')')) {
      if (!comma) fail("no comma between numbers");
      if (values.size() == kMostDimensions) fail("too many dimensions");
      values.push_back(integer());
      comma = accept(',');
      if (values.size() == 1 && !comma) fail("a number in brackets, not a tuple");
    }
    return values;
  }
  // "<u4" -> "uint32"; "|u1" has no byte order; anything else stays.
  static std::string canonical(const std::string& descr) {
    if (descr == "|u1" || descr == "|i1") return descr == "|u1" ? "uint8" : "int8";
    if (descr.size() != 3 || (descr[0] != '<' && descr[0] != '=') || (descr[1] != 'u' && descr[1] != 'i')) return descr;
    const int width = descr[2] - '0';
    if (width != 1 && width != 2 && width != 4 && width != 8) return descr;
    return fmt::format("{}int{}", descr[1] == 'u' ? "u" : "", width * 8);
  }

  std::string_view text_;
  const std::string& where_;
  size_t at_ = 0;
};

}  // namespace

NpyHeader parse_npy_dict(std::string_view text, const std::string& where) { return DictParser(text, where).parse(); }

}  // namespace dz::data
