// The n-gram repetition filter: an instance in which some n-gram repeats many times in a row is no target of training, though it stays in
// its place and goes through the model. Two dialects, since MaxText's port is not what OLMo-core does.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dz::data {

enum class FilterDialect : uint8_t {
  kOlmoCore,  // OLMo-core: data/utils.py find_periodic_sequences
  // MaxText: input_pipeline/olmo_data.py. Where the period divides the length, the instance is taken as a ring, so that its end counts as what
  // comes before its start: up to two repeats too many, never too few.
  kMaxText,
};
std::string_view name_of(FilterDialect dialect);                                      // "olmo-core", "maxtext"
FilterDialect parse_filter_dialect(std::string_view name, const std::string& where);  // ConfigError listing the two

// The defaults are OLMo-core's InstanceFilterConfig, which the OLMo 3 32B run used.
struct RepetitionFilter {
  int64_t min_period = 1, max_period = 13;  // tokens of the n-gram; periods above a third of the instance are not looked for
  int64_t max_count = 32;                   // this many repeats in a row are too many; fewer than 3 are never seen
  FilterDialect dialect = FilterDialect::kOlmoCore;
};

// ConfigError: periods or count below 1, or the least period above the largest.
void check_filter(const RepetitionFilter& filter, const std::string& where);

// False when an n-gram repeats max_count times. O(periods * length) at most, far less on most texts.
bool is_clean(std::span<const int32_t> tokens, const RepetitionFilter& filter);

// tokens[start, end) has the period; in MaxText's dialect start may be below 0 and end above the length, around the ring.
struct Repetition {
  int64_t start = 0, end = 0, period = 0;
  int64_t times = 0;  // (end - start) / period, at least 3
  friend bool operator==(const Repetition&, const Repetition&) = default;
};
// All of them, by period and then by place, whatever max_count says: what is_clean judges by.
std::vector<Repetition> find_repetitions(std::span<const int32_t> tokens, const RepetitionFilter& filter);

}  // namespace dz::data
