#include "data/repetition_filter.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace dz::data {
namespace {

using Tokens = std::span<const int32_t>;

bool repeats_at(Tokens tokens, int64_t i, int64_t period) { return tokens[static_cast<size_t>(i)] == tokens[static_cast<size_t>(i - period)]; }

// n-grams that repeat less than three times are not looked for, so a longer one is of no use.
int64_t last_period(Tokens tokens, const RepetitionFilter& filter) { return std::min(filter.max_period, std::ssize(tokens) / 3); }

bool is_ring(Tokens tokens, int64_t period, FilterDialect dialect) { return dialect == FilterDialect::kMaxText && std::ssize(tokens) % period == 0; }

// Whether some `needed` tokens in a row each equal the one a period before. Every window of that length is read from its end, and what is
// known to differ is jumped over, so that mostly one token in `needed` is looked at, and none more than twice.
bool has_run(Tokens tokens, int64_t period, int64_t needed) {
  for (int64_t end = period + needed; end <= std::ssize(tokens);) {
    int64_t start = end;
    while (start > end - needed && repeats_at(tokens, start - 1, period)) --start;
    if (start == end - needed) return true;
    end = start + needed;
  }
  return false;
}

void find_in_line(Tokens tokens, int64_t period, std::vector<Repetition>& found) {
  const int64_t size = std::ssize(tokens);
  for (int64_t i = period; i < size;) {
    int64_t end = i;
    while (end < size && repeats_at(tokens, end, period)) ++end;
    const Repetition span{.start = i - period, .end = end, .period = period, .times = (end - i) / period + 1};
    if (end > i && span.times > 2) found.push_back(span);
    i = end + 1;
  }
}

// MaxText compares rows of `period` tokens with the row before, the first with the last. Whole equal rows make a span, which the equal
// tokens beside it at either end extend, also around the ring; rows that are equal throughout extend nothing backwards.
void find_in_ring(Tokens tokens, int64_t period, std::vector<Repetition>& found) {
  const int64_t size = std::ssize(tokens), rows = size / period;
  const auto equal = [&](int64_t i) {
    return tokens[static_cast<size_t>(i)] == tokens[static_cast<size_t>(i < period ? i + size - period : i - period)];
  };
  const auto leading = [&](int64_t row) {
    int64_t count = 0;
    while (count < period && equal(row * period + count)) ++count;
    return count;
  };
  const auto trailing = [&](int64_t row) {
    int64_t count = 0;
    while (count < period && equal(row * period + period - 1 - count)) ++count;
    return count;
  };
  for (int64_t row = 0; row < rows; ++row) {
    if (leading(row) < period) continue;
    const int64_t first = row;
    while (row + 1 < rows && leading(row + 1) == period) ++row;
    const int64_t before = trailing((first + rows - 1) % rows);
    Repetition span{
        .start = (first - 1) * period - (before < period ? before : 0), .end = (row + 1) * period + leading((row + 1) % rows), .period = period};
    span.times = (span.end - span.start) / period;
    if (span.times > 2) found.push_back(span);
  }
}

void find_of_period(Tokens tokens, int64_t period, FilterDialect dialect, std::vector<Repetition>& found) {
  if (is_ring(tokens, period, dialect)) {
    find_in_ring(tokens, period, found);
  } else {
    find_in_line(tokens, period, found);
  }
}

}  // namespace

std::string_view name_of(FilterDialect dialect) { return dialect == FilterDialect::kOlmoCore ? "olmo-core" : "maxtext"; }

FilterDialect parse_filter_dialect(std::string_view name, const std::string& where) {
  for (const FilterDialect dialect : {FilterDialect::kOlmoCore, FilterDialect::kMaxText}) {
    if (name == name_of(dialect)) return dialect;
  }
  throw ConfigError(Complaint{.where = where, .found = std::string(name), .expected = "olmo-core or maxtext", .hint = ""});
}

void check_filter(const RepetitionFilter& filter, const std::string& where) {
  if (filter.min_period >= 1 && filter.max_period >= filter.min_period && filter.max_count >= 1) return;
  throw ConfigError(Complaint{.where = where,
                              .found = fmt::format("periods {} to {}, count {}", filter.min_period, filter.max_period, filter.max_count),
                              .expected = "1 <= least period <= largest period, and a count of at least 1",
                              .hint = ""});
}

bool is_clean(Tokens tokens, const RepetitionFilter& filter) {
  const int64_t count = std::max<int64_t>(filter.max_count, 3);
  for (int64_t period = filter.min_period; period <= last_period(tokens, filter); ++period) {
    if (is_ring(tokens, period, filter.dialect)) {
      std::vector<Repetition> found;
      find_in_ring(tokens, period, found);
      if (std::any_of(found.begin(), found.end(), [&](const Repetition& span) { return span.times >= count; })) return false;
    } else if (count <= std::ssize(tokens) / period && has_run(tokens, period, (count - 1) * period)) {
      return false;
    }
  }
  return true;
}

std::vector<Repetition> find_repetitions(Tokens tokens, const RepetitionFilter& filter) {
  std::vector<Repetition> found;
  for (int64_t period = filter.min_period; period <= last_period(tokens, filter); ++period) find_of_period(tokens, period, filter.dialect, found);
  return found;
}

}  // namespace dz::data
