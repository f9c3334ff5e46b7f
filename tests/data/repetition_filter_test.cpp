#include "data/repetition_filter.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "data/goldens.h"
#include "data/temporary.h"

namespace dz::data {
namespace {

using nlohmann::json;
using Tokens = std::vector<int32_t>;

json spans(const Tokens& tokens, RepetitionFilter filter, FilterDialect dialect) {
  filter.dialect = dialect;
  json list = json::array();
  for (const Repetition& span : find_repetitions(tokens, filter)) list.push_back({span.start, span.end, span.period, span.times});
  return list;
}

bool clean(const Tokens& tokens, RepetitionFilter filter, FilterDialect dialect) {
  filter.dialect = dialect;
  return is_clean(tokens, filter);
}

void compare(const json& row, const RepetitionFilter& filter) {
  const auto tokens = row["tokens"].get<Tokens>();
  EXPECT_EQ(spans(tokens, filter, FilterDialect::kOlmoCore), row["olmo"]) << row;
  EXPECT_EQ(spans(tokens, filter, FilterDialect::kMaxText), row["maxtext"]) << row;
  EXPECT_EQ(clean(tokens, filter, FilterDialect::kOlmoCore), row["olmo_good"].get<bool>()) << row;
  EXPECT_EQ(clean(tokens, filter, FilterDialect::kMaxText), row["maxtext_good"].get<bool>()) << row;
}

TEST(RepetitionFilter, EqualsOlmoCoreAndMaxText) {
  const json golden = test::data_golden("filter.json");
  for (const json& row : golden["named_period_1_13_count_32"]) compare(row, {});
  int differ = 0;
  for (const json& row : golden["fuzz"]) {
    compare(row, {.min_period = row["min_period"], .max_period = row["max_period"], .max_count = row["max_count"]});
    differ += row["olmo_good"] != row["maxtext_good"];
  }
  EXPECT_EQ(differ, 15) << "the rows must tell the dialects apart";
}

// Row 65: the largest count of a run of 31 and one more token at the other end is 31, which MaxText's port makes 32.
TEST(RepetitionFilter, TheEndsAreNotJoinedExceptInMaxTextsDialect) {
  Tokens split(31, 7);
  for (int32_t i = 0; i < 200; ++i) split.push_back(1000 + i);
  split.push_back(7);
  const Tokens whole31(31, 7), whole32(32, 7);
  const auto largest = [](const Tokens& tokens, FilterDialect dialect) {
    int64_t most = 0;
    for (const Repetition& span : find_repetitions(tokens, {.dialect = dialect})) most = std::max(most, span.times);
    return most;
  };
  EXPECT_EQ(largest(split, FilterDialect::kOlmoCore), 31);
  EXPECT_EQ(largest(whole31, FilterDialect::kOlmoCore), 31);
  EXPECT_EQ(largest(whole32, FilterDialect::kOlmoCore), 32);
  EXPECT_EQ(largest(split, FilterDialect::kMaxText), 32);
  EXPECT_EQ(largest(whole31, FilterDialect::kMaxText), 33);
  EXPECT_EQ(largest(whole32, FilterDialect::kMaxText), 34);
  EXPECT_TRUE(clean(split, {}, FilterDialect::kOlmoCore));
  EXPECT_FALSE(clean(split, {}, FilterDialect::kMaxText));
  EXPECT_FALSE(clean(whole32, {}, FilterDialect::kOlmoCore));
}

// Straight from the words: some place where `count` copies of an n-gram of the period follow each other.
bool has_repeats(const Tokens& tokens, int64_t period, int64_t count) {
  for (int64_t start = 0; start + period * count <= std::ssize(tokens); ++start) {
    int64_t i = start + period;
    while (i < start + period * count && tokens[static_cast<size_t>(i)] == tokens[static_cast<size_t>(i - period)]) ++i;
    if (i == start + period * count) return true;
  }
  return false;
}

TEST(RepetitionFilter, EqualsBruteForce) {
  std::mt19937_64 random(5);
  int bad = 0;
  for (int round = 0; round < 4000; ++round) {
    Tokens tokens(64 + random() % 8);
    for (int32_t& token : tokens) token = static_cast<int32_t>(random() % 2);
    const RepetitionFilter filter{
        .min_period = 1 + static_cast<int64_t>(random() % 3), .max_period = 13, .max_count = 3 + static_cast<int64_t>(random() % 5)};
    bool expected = true;
    for (int64_t period = filter.min_period; period <= filter.max_period; ++period)
      expected = expected && !has_repeats(tokens, period, filter.max_count);
    ASSERT_EQ(clean(tokens, filter, FilterDialect::kOlmoCore), expected) << round;
    bad += !expected;
  }
  EXPECT_GT(bad, 400);
  EXPECT_LT(bad, 3600);
}

// A promise with an edge on each side: one repeat fewer is clean, one token fewer of the last repeat too.
TEST(RepetitionFilter, CountIsTheFirstThatIsTooMany) {
  for (int64_t period = 1; period <= 13; ++period) {
    Tokens tokens;
    for (int64_t i = 0; i < 32 * period; ++i) tokens.push_back(static_cast<int32_t>(i % period));
    tokens.insert(tokens.begin(), {500, 501});
    tokens.push_back(502);
    EXPECT_FALSE(clean(tokens, {}, FilterDialect::kOlmoCore)) << period;
    tokens[tokens.size() - 2] = 503;
    EXPECT_TRUE(clean(tokens, {}, FilterDialect::kOlmoCore)) << period;
  }
  Tokens fourteen;
  for (int32_t i = 0; i < 560; ++i) fourteen.push_back(i % 14);
  EXPECT_TRUE(clean(fourteen, {}, FilterDialect::kOlmoCore));
}

TEST(RepetitionFilter, ShortAndEmptyInstancesAreClean) {
  for (const FilterDialect dialect : {FilterDialect::kOlmoCore, FilterDialect::kMaxText}) {
    EXPECT_TRUE(clean({}, {}, dialect));
    EXPECT_TRUE(clean({4, 4}, {.max_count = 1}, dialect));
    EXPECT_FALSE(clean({4, 4, 4}, {.max_count = 1}, dialect));
  }
}

TEST(RepetitionFilter, SettingsAreChecked) {
  EXPECT_NO_THROW(check_filter({}, "f"));
  EXPECT_THROW(check_filter({.min_period = 0}, "f"), ConfigError);
  EXPECT_THROW(check_filter({.min_period = 5, .max_period = 4}, "f"), ConfigError);
  EXPECT_THROW(check_filter({.max_count = 0}, "f"), ConfigError);
  EXPECT_EQ(test::message_of<ConfigError>([] { parse_filter_dialect("grain", "recipe.data.filter.dialect"); }),
            "recipe.data.filter.dialect: found grain, expected olmo-core or maxtext");
  EXPECT_EQ(parse_filter_dialect("maxtext", ""), FilterDialect::kMaxText);
}

}  // namespace
}  // namespace dz::data
