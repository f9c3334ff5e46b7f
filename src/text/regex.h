// A regular expression of a tokenizer.json that is none of the patterns written out by hand, run by PCRE2 over our Unicode tables.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dz::text {

struct TextMatch {
  size_t begin;
  size_t end;
};

// Immutable; any number of threads may use one.
class Regex {
 public:
  // DataError naming `where` for what translate_regex refuses, or the engine.
  Regex(std::string_view pattern, const std::string& where);
  ~Regex();
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;

  // All matches in `text`, leftmost first, without overlap; an empty one only where the one before did not end. An ill-formed part counts as one
  // U+FFFD. DataError naming the limit when a match takes more steps than kMaxSteps, more memory than kMaxStack, or the text more than kMaxSeconds of
  // processor time and one for each MB.
  void find_all(std::string_view text, std::vector<TextMatch>& matches) const;

  static constexpr unsigned kMaxSteps = 10'000'000;
  static constexpr size_t kMaxStack = size_t{8} << 20;
  static constexpr int kMaxSeconds = 60;

 private:
  struct State;
  void find_valid(std::string_view text, std::vector<TextMatch>& matches) const;

  std::unique_ptr<State> state_;
};

}  // namespace dz::text
