#include "text/html.h"

#include <algorithm>
#include <array>

#include "text/unicode.h"

namespace dz::text {
namespace {

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }
constexpr bool is_letter(char c) { return lower(c) >= 'a' && lower(c) <= 'z'; }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }

template <size_t kCount>
bool one_of(std::string_view name, const std::array<std::string_view, kCount>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Their contents are not text of the page; nothing inside is a tag but their own end.
constexpr std::array<std::string_view, 9> kOpaque = {"script", "style", "template", "svg", "math", "iframe", "object", "noscript", "noframes"};
constexpr std::array<std::string_view, 10> kParagraphs = {"p", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "blockquote", "table"};
constexpr std::array<std::string_view, 28> kBlocks = {"address", "article", "aside",   "body",   "br", "dd", "details", "div",    "dl", "dt",
                                                      "figure",  "footer",  "form",    "header", "hr", "li", "main",    "nav",    "ol", "option",
                                                      "section", "select",  "summary", "title",  "tr", "ul", "head",    "caption"};

// Collects text; white space is remembered and written only in front of the next character.
class TextWriter {
 public:
  void space() { pending_ = std::max(pending_, kSpace); }
  void line() { pending_ = std::max(pending_, kLine); }
  void paragraph() { pending_ = std::max(pending_, kParagraph); }
  void add(std::string_view bytes) {
    if (pending_ >= kLine) trim();  // a preformatted end may have brought its own
    if (!out_.empty()) out_ += std::array<std::string_view, 4>{"", " ", "\n", "\n\n"}[pending_];
    pending_ = kNothing;
    out_ += bytes;
  }
  std::string finish() {
    while (!out_.empty() && is_space(out_.back())) out_.pop_back();
    if (pending_ >= kLine) trim();  // a preformatted end may have brought its own
    if (!out_.empty()) out_ += '\n';
    return std::move(out_);
  }

 private:
  void trim() {
    while (!out_.empty() && is_space(out_.back())) out_.pop_back();
  }

  enum Pending : size_t { kNothing, kSpace, kLine, kParagraph };
  std::string out_;
  Pending pending_ = kNothing;
};

class Scanner {
 public:
  explicit Scanner(std::string_view page) : page_(page) {}

  std::string run() {
    while (at_ < page_.size()) {
      if (page_[at_] == '<' && markup()) continue;
      text();
    }
    return writer_.finish();
  }

 private:
  char peek(size_t ahead) const { return at_ + ahead < page_.size() ? page_[at_ + ahead] : '\0'; }
  void skip_past(std::string_view end) {
    const size_t found = page_.find(end, at_);
    at_ = found == std::string_view::npos ? page_.size() : found + end.size();
  }

  // True when something was skipped; a lone < is text.
  bool markup() {
    const char next = peek(1);
    if (next == '!') {
      if (page_.substr(at_).starts_with("<![CDATA[")) {
        cdata();
      } else {
        skip_past(page_.substr(at_).starts_with("<!--") ? "-->" : ">");
      }
      return true;
    }
    if (next == '?') {
      skip_past(">");
      return true;
    }
    if (is_letter(next) || (next == '/' && is_letter(peek(2)))) {
      tag();
      return true;
    }
    return false;
  }

  void cdata() {
    at_ += std::string_view("<![CDATA[").size();
    const size_t end = std::min(page_.find("]]>", at_), page_.size());
    writer_.add(page_.substr(at_, end - at_));
    at_ = std::min(end + 3, page_.size());
  }

  void tag() {
    const bool closing = peek(1) == '/';
    at_ += closing ? 2 : 1;
    std::string name;
    while (at_ < page_.size() && !is_space(page_[at_]) && page_[at_] != '>' && page_[at_] != '/') name += lower(page_[at_++]);
    const bool empty = attributes();
    if (one_of(name, kOpaque) && !closing && !empty) return skip_element(name);
    if (name == "pre") {
      preformatted_ = !closing;
      if (preformatted_ && peek(0) == '\n') ++at_;  // a line end right behind the tag is not part of the text
    }
    if (one_of(name, kParagraphs)) {
      writer_.paragraph();
    } else if (one_of(name, kBlocks)) {
      writer_.line();
    } else if (name == "td" || name == "th") {
      writer_.space();
    }
  }

  // To behind the >, minding that a quoted value may hold one; true for <name ... />.
  bool attributes() {
    char quote = '\0';
    char before = '\0';
    char last = '\0';
    for (; at_ < page_.size(); ++at_) {
      const char c = page_[at_];
      if (quote) {
        if (c == quote) quote = '\0';
      } else if (c == '>') {
        ++at_;
        return last == '/';
      } else if ((c == '"' || c == '\'') && before == '=') {
        quote = c;
      }
      last = c;
      if (!is_space(c)) before = c;
    }
    return false;
  }

  void skip_element(const std::string& name) {
    for (; at_ < page_.size(); ++at_) {
      if (page_[at_] != '<' || peek(1) != '/') continue;
      const std::string_view candidate = page_.substr(at_ + 2, name.size());
      if (candidate.size() == name.size() && std::equal(name.begin(), name.end(), candidate.begin(), [](char a, char b) { return a == lower(b); })) {
        at_ += 2;
        return skip_past(">");
      }
    }
  }

  void text() {
    const char c = page_[at_];
    if (c == '&') return entity();
    if (is_space(c) && !preformatted_) {
      writer_.space();
      ++at_;
      return;
    }
    size_t end = at_ + 1;
    while (end < page_.size() && page_[end] != '<' && page_[end] != '&' && (preformatted_ || !is_space(page_[end]))) ++end;
    writer_.add(page_.substr(at_, end - at_));
    at_ = end;
  }

  // A name or number that we do not know stays as it is written.
  void entity() {
    constexpr size_t kLongest = 32;
    const std::string_view rest = page_.substr(at_ + 1, kLongest);
    const size_t end = rest.find(';');
    const std::optional<uint32_t> value = end == std::string_view::npos ? std::nullopt : value_of(rest.substr(0, end));
    if (!value) {
      writer_.add("&");
      ++at_;
      return;
    }
    std::string bytes;
    append_utf8(*value == 0xA0 ? ' ' : *value, bytes);
    writer_.add(bytes);
    at_ += end + 2;
  }

  static std::optional<uint32_t> value_of(std::string_view name) {
    if (!name.starts_with('#')) return html_entity(name);
    const bool hex = name.size() > 1 && lower(name[1]) == 'x';
    const std::string_view digits = name.substr(hex ? 2 : 1);
    if (digits.empty()) return std::nullopt;
    uint64_t number = 0;
    for (const char c : digits) {
      const bool letter = hex && lower(c) >= 'a' && lower(c) <= 'f';
      if (!is_digit(c) && !letter) return std::nullopt;
      number = std::min<uint64_t>(number * (hex ? 16 : 10) + static_cast<uint64_t>(letter ? lower(c) - 'a' + 10 : c - '0'), 0x110000);
    }
    return html_numeric(number);
  }

  std::string_view page_;
  size_t at_ = 0;
  bool preformatted_ = false;
  TextWriter writer_;
};

// One byte a character; the standard reads a declared ISO-8859-1 as windows-1252 too.
bool is_declared_latin(std::string_view page) {
  constexpr size_t kPrescan = 1024;
  std::string start(page.substr(0, kPrescan));
  std::transform(start.begin(), start.end(), start.begin(), lower);
  for (const std::string_view key : {"charset=", "encoding="}) {
    const size_t at = start.find(key);
    if (at == std::string::npos) continue;
    std::string_view value = std::string_view(start).substr(at + key.size());
    if (value.starts_with('"') || value.starts_with('\'')) value.remove_prefix(1);
    for (const std::string_view name : {"iso-8859-1", "windows-1252", "latin1"})
      if (value.starts_with(name) && !is_digit(value.substr(name.size()).empty() ? ' ' : value[name.size()])) return true;
    return false;
  }
  return false;
}

}  // namespace

std::string html_text(std::string page, int64_t& replaced) {
  replaced = 0;
  if (is_declared_latin(page)) {
    std::string utf8;
    for (const char c : page) {
      const auto byte = static_cast<unsigned char>(c);
      append_utf8(byte < 0x80 ? byte : html_numeric(byte), utf8);
    }
    page = std::move(utf8);
  } else {
    replaced = replace_invalid_utf8(page);
  }
  std::string_view body = page;
  if (body.starts_with("\xEF\xBB\xBF")) body.remove_prefix(3);
  return Scanner(body).run();
}

}  // namespace dz::text
