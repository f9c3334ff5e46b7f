#include "text/regex_translate.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/error.h"
#include "text/unicode.h"

namespace dz::text {
namespace {

constexpr size_t kMaxPattern = 10000;
constexpr int kMaxDepth = 50;
constexpr int kMaxRepeat = 1000;
constexpr uint32_t kLast = 0x10FFFF;

using Set = std::vector<CodePointRange>;

void add(Set& set, std::span<const CodePointRange> ranges) { set.insert(set.end(), ranges.begin(), ranges.end()); }

// Ascending, without gaps of nothing.
void sort_ranges(Set& set) {
  std::sort(set.begin(), set.end(), [](const CodePointRange& a, const CodePointRange& b) { return a.first < b.first; });
  Set joined;
  for (const CodePointRange& range : set) {
    if (!joined.empty() && range.first <= joined.back().last + 1)
      joined.back().last = std::max(joined.back().last, range.last);
    else
      joined.push_back(range);
  }
  set = std::move(joined);
}

Set complement(Set set) {
  sort_ranges(set);
  Set others;
  uint32_t next = 0;
  for (const CodePointRange& range : set) {
    if (range.first > next) others.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLast) others.push_back({next, kLast});
  return others;
}

std::string spell(uint32_t c) { return fmt::format("\\x{{{:X}}}", c); }

// Surrogates are no characters: the engine refuses them as ends of a range.
std::string spell(Set set) {
  sort_ranges(set);
  std::string out;
  for (CodePointRange range : set) {
    if (range.first >= 0xD800 && range.first < 0xE000) range.first = 0xE000;
    if (range.last >= 0xD800 && range.last < 0xE000) range.last = 0xD7FF;
    if (range.first > range.last) continue;
    out += spell(range.first);
    if (range.last > range.first) out += "-" + spell(range.last);
  }
  return out.empty() ? "(?!)" : "[" + out + "]";
}

bool is_ascii_letter(uint32_t c) { return c < 128 && (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }

class Translator {
 public:
  Translator(std::string_view pattern, const std::string& where) : pattern_(pattern), where_(where) {}

  std::string run() {
    if (pattern_.empty() || pattern_.size() > kMaxPattern || !is_valid_utf8(pattern_))
      refuse(0, 0, fmt::format("UTF-8 of 1 to {} bytes", kMaxPattern));
    alternatives(false, 0);
    if (!at_end()) refuse(at_, 1, "no ) without its (");
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(size_t at, size_t size, const std::string& expected) const {
    const std::string_view part = pattern_.substr(at, size);
    throw DataError(Complaint{.where = where_,
                              .found = size == 0 ? "the pattern \"" + std::string(pattern_.substr(0, 80)) + "\""
                                                 : fmt::format("\"{}\" at byte {} of the pattern", part, at),
                              .expected = expected,
                              .hint = "docs/tokenizer.md lists what is read"});
  }
  bool at_end() const { return at_ == pattern_.size(); }
  bool next_is(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }
  bool take(std::string_view text) {
    if (!next_is(text)) return false;
    at_ += text.size();
    return true;
  }
  uint32_t take_char() {
    const CodePoint c = decode_utf8(pattern_, at_);
    at_ += c.size;
    return c.value;
  }

  bool alternatives(bool fold, int depth);  // each returns whether it can match nothing
  bool sequence(bool fold, int depth);
  struct Atom {
    bool nullable = false;
    bool repeatable = true;
  };
  Atom atom(bool fold, int depth);
  Atom group(bool fold, int depth);
  bool quantifier(const Atom& item, size_t item_at);
  void braces(size_t begin, int& least, int& most, bool& exact);
  int number();

  void literal(uint32_t c, size_t at, bool fold);
  Set char_class(size_t begin);
  std::optional<uint32_t> escaped_char(size_t begin);  // behind the backslash; nothing for a set
  Set escaped_set(size_t begin);
  uint32_t hex(size_t begin, size_t least, size_t most);

  std::string_view pattern_;
  const std::string& where_;
  size_t at_ = 0;
  std::string out_;
  uint32_t folded_before_ = 0;  // the letter under (?i:..) right before, 0 when there is none
};

bool Translator::alternatives(bool fold, int depth) {
  if (depth > kMaxDepth) refuse(at_, 1, fmt::format("groups at most {} deep", kMaxDepth));
  bool nullable = sequence(fold, depth);
  while (take("|")) {
    out_ += '|';
    nullable = sequence(fold, depth) || nullable;
  }
  return nullable;
}

bool Translator::sequence(bool fold, int depth) {
  bool nullable = true;
  folded_before_ = 0;
  while (!at_end() && !next_is("|") && !next_is(")")) {
    const size_t begin = at_;
    const Atom item = atom(fold, depth);
    nullable = quantifier(item, begin) && nullable;
  }
  folded_before_ = 0;
  return nullable;
}

Translator::Atom Translator::atom(bool fold, int depth) {
  const size_t begin = at_;
  const auto set = [&](const Set& ranges) {
    if (fold) refuse(begin, at_ - begin, "only literals in (?i:..)");
    out_ += spell(ranges);
    return Atom{};
  };
  if (take("(")) return group(fold, depth);
  if (take("[")) return set(char_class(begin));
  if (take(".")) return set(complement({{'\n', '\n'}}));
  for (const char c : std::string_view("^$*+?{"))
    if (next_is({&c, 1})) refuse(begin, 1, c == '^' || c == '$' ? "no anchors" : "something to repeat before it");
  if (take("\\")) {
    const std::optional<uint32_t> c = escaped_char(begin);
    if (!c) return set(escaped_set(begin));
    literal(*c, begin, fold);
  } else {
    literal(take_char(), begin, fold);
  }
  return {.nullable = false, .repeatable = !fold || folded_before_ == 0};
}

// Case folding of ASCII letters: U+017F is an s and U+212A a k. ss, st and f with f, i, l are also single letters (U+00DF, U+FB00, ...).
void Translator::literal(uint32_t c, size_t at, bool fold) {
  if (!fold || c < 128) {
    if (!fold || !is_ascii_letter(c)) {
      folded_before_ = 0;
      out_ += spell(c);
      return;
    }
    const uint32_t lower = c | 0x20;
    for (const std::string_view pair : {"ss", "st", "ff", "fi", "fl"})
      if (folded_before_ == static_cast<uint32_t>(pair[0]) && lower == static_cast<uint32_t>(pair[1]))
        refuse(at, 1, fmt::format("no \"{}\" in (?i:..), which is also a ligature", pair));
    Set both = {{lower, lower}, {lower - 0x20, lower - 0x20}};
    if (lower == 's') both.push_back({0x17F, 0x17F});
    if (lower == 'k') both.push_back({0x212A, 0x212A});
    out_ += spell(both);
    folded_before_ = lower;
    return;
  }
  refuse(at, at_ - at, "only ASCII literals in (?i:..)");
}

Translator::Atom Translator::group(bool fold, int depth) {
  const size_t begin = at_ - 1;
  bool look_around = false;
  std::string_view opening = "(?:";
  if (next_is("?")) {
    bool known = take("?:");
    for (const std::string_view form : {"?=", "?!", "?<=", "?<!"}) {
      if (known || !take(form)) continue;
      known = look_around = true;
      opening = pattern_.substr(begin, form.size() + 1);
    }
    if (!known && take("?>")) {
      known = true;
      opening = "(?>";
    }
    if (!known && take("?i:")) known = fold = true;
    if (!known) refuse(begin, std::min<size_t>(4, pattern_.size() - begin), "(..), (?:..), (?>..), (?i:..) or a look-around");
  }
  out_ += opening;
  const bool nullable = alternatives(fold, depth + 1);
  if (!take(")")) refuse(begin, pattern_.size() - begin, "a closing )");
  out_ += ')';
  folded_before_ = 0;
  return {.nullable = nullable || look_around, .repeatable = !look_around};
}

// What follows an atom; returns whether the two can match nothing.
bool Translator::quantifier(const Atom& item, size_t item_at) {
  const size_t begin = at_;
  int least = 1;
  int most = 1;  // -1: no limit
  bool interval = false;
  bool exact = false;
  if (take("*")) {
    least = 0;
    most = -1;
  } else if (take("+")) {
    most = -1;
  } else if (take("?")) {
    least = 0;
  } else if (take("{")) {
    interval = true;
    braces(begin, least, most, exact);
  } else {
    return item.nullable;
  }
  if (!item.repeatable) refuse(item_at, at_ - item_at, "no repeat of a look-around, nor of a letter in (?i:..)");
  if (item.nullable && most != 1) refuse(item_at, at_ - item_at, "no repeat of what may be empty");
  out_ += interval ? fmt::format("{{{},{}}}", least, most < 0 ? "" : std::to_string(most)) : std::string(pattern_.substr(begin, 1));
  if (next_is("?")) {
    if (exact) refuse(item_at, at_ + 1 - item_at, "no {n}?, which engines read differently");
    out_ += '?';
    ++at_;
  } else if (next_is("+")) {
    if (interval) refuse(item_at, at_ + 1 - item_at, "no {n,m}+, which engines read differently");
    out_ += '+';
    ++at_;
  }
  for (const std::string_view more : {"*", "+", "?", "{"})
    if (next_is(more)) refuse(item_at, at_ + 1 - item_at, "one repeat");
  return item.nullable || least == 0;
}

void Translator::braces(size_t begin, int& least, int& most, bool& exact) {
  const bool open_below = next_is(",");
  least = open_below ? 0 : number();
  most = least;
  exact = true;
  if (take(",")) {
    exact = false;
    most = next_is("}") ? -1 : number();
  }
  if (!take("}") || (open_below && most < 0) || least < 0 || (most >= 0 && most < least) || most == 0)
    refuse(begin, std::min<size_t>(8, pattern_.size() - begin), fmt::format("{{n}}, {{n,}}, {{n,m}} or {{,m}} with n <= m up to {}", kMaxRepeat));
}

int Translator::number() {
  int value = -1;
  while (!at_end() && pattern_[at_] >= '0' && pattern_[at_] <= '9') {
    value = std::max(value, 0) * 10 + (pattern_[at_] - '0');
    ++at_;
    if (value > kMaxRepeat) refuse(at_ - 1, 1, fmt::format("repeats of at most {}", kMaxRepeat));
  }
  if (value < 0) refuse(at_, 1, "a number or \\{");
  return value;
}

uint32_t Translator::hex(size_t begin, size_t least, size_t most) {
  uint32_t value = 0;
  size_t digits = 0;
  for (; digits < most && !at_end(); ++digits, ++at_) {
    const char c = pattern_[at_];
    if (c >= '0' && c <= '9')
      value = value * 16 + static_cast<uint32_t>(c - '0');
    else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
      value = value * 16 + static_cast<uint32_t>((c | 0x20) - 'a' + 10);
    else
      break;
  }
  if (digits < least) refuse(begin, at_ - begin, "a hexadecimal number");
  return value;
}

std::optional<uint32_t> Translator::escaped_char(size_t begin) {
  if (at_end()) refuse(begin, 1, "something behind the \\");
  constexpr std::string_view kNames = "rntfvae";
  constexpr std::string_view kValues = "\r\n\t\f\v\a\x1B";
  const char c = pattern_[at_];
  if (const size_t known = kNames.find(c); known != std::string_view::npos) {
    ++at_;
    return static_cast<uint32_t>(kValues[known]);
  }
  if (c == 's' || c == 'S' || c == 'p' || c == 'P') return std::nullopt;
  uint32_t value = 0;
  if (take("x{")) {
    value = hex(begin, 1, 6);
    if (!take("}")) refuse(begin, at_ - begin, "\\x{H..} with its }");
  } else if (take("x")) {
    value = hex(begin, 1, 2);
    if (value >= 0x80) refuse(begin, at_ - begin, "\\x{H..}, because \\xHH is a byte from 80 on");
  } else if (take("u")) {
    value = hex(begin, 4, 4);
  } else if (static_cast<unsigned char>(c) < 128 && !is_ascii_letter(static_cast<uint32_t>(c)) && !(c >= '0' && c <= '9')) {
    ++at_;
    return static_cast<uint32_t>(c);
  } else {
    refuse(begin, 1 + decode_utf8(pattern_, at_).size, "\\s, \\S, \\p{L}, \\p{N}, an escaped sign or a code point");
  }
  if (value > kLast || (value >= 0xD800 && value < 0xE000)) refuse(begin, at_ - begin, "a character");
  return value;
}

Set Translator::escaped_set(size_t begin) {
  const char c = pattern_[at_++];
  Set set;
  bool negated = c == 'S' || c == 'P';
  if (c == 's' || c == 'S') {
    add(set, space_ranges());
    return negated ? complement(std::move(set)) : set;
  }
  const size_t end = pattern_.find('}', at_);
  if (!take("{") || end == std::string_view::npos) refuse(begin, 2, "\\p{L} or \\p{N}");
  if (take("^")) negated = !negated;
  const std::string_view name = pattern_.substr(at_, end - at_);
  at_ = end + 1;
  if (name != "L" && name != "N") refuse(begin, at_ - begin, "\\p{L} or \\p{N}; other properties are not supported");
  add(set, name == "L" ? letter_ranges() : number_ranges());
  return negated ? complement(std::move(set)) : set;
}

// Behind the [. Nested classes and && are Oniguruma's own, and a - between anything but two characters is read in several ways.
Set Translator::char_class(size_t begin) {
  const bool negated = take("^");
  Set set;
  bool first = true;
  while (true) {
    if (at_end()) refuse(begin, pattern_.size() - begin, "a closing ]");
    if (next_is("]")) {
      if (first) refuse(begin, at_ + 1 - begin, "something in the class; a ] in it is \\]");
      ++at_;
      break;
    }
    if (next_is("[") || next_is("&&")) refuse(at_, next_is("[") ? 1 : 2, "no class within a class and no &&; a sign is \\[ or \\&");
    const size_t item = at_;
    std::optional<uint32_t> from;
    if (take("\\")) {
      from = escaped_char(item);
      if (!from) add(set, escaped_set(item));
    } else {
      from = take_char();
      if (*from == '-' && !first && !next_is("]")) refuse(item, 1, "\\- for the sign");
    }
    first = false;
    if (!from) {
      if (next_is("-") && !pattern_.substr(at_).starts_with("-]")) refuse(item, at_ + 1 - item, "\\- for the sign");
      continue;
    }
    uint32_t to = *from;
    if (next_is("-") && !pattern_.substr(at_).starts_with("-]")) {
      ++at_;
      if (at_end() || next_is("[")) refuse(item, at_ - item, "a range of two characters");
      std::optional<uint32_t> last = take("\\") ? escaped_char(at_ - 1) : take_char();
      if (!last || *last < *from) refuse(item, at_ - item, "a range of two characters, the lower first");
      to = *last;
    }
    set.push_back({*from, to});
  }
  return negated ? complement(std::move(set)) : set;
}

}  // namespace

std::string translate_regex(std::string_view pattern, const std::string& where) { return Translator(pattern, where).run(); }

}  // namespace dz::text
