// Patterns of tokenizer.json that go through PCRE2: what is taken, what is refused and by which name, and what stops a hostile one.
// That matches are those of the library is in library_cases_test.cpp and tools/reference/tokenizer_fuzz.py.
#include "text/regex.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "text/golden.h"
#include "text/regex_translate.h"

namespace dz::text {
namespace {

std::vector<std::string> matches(const std::string& pattern, const std::string& text) {
  std::vector<TextMatch> found;
  Regex(pattern, "t").find_all(text, found);
  std::vector<std::string> parts;
  for (const TextMatch& match : found) parts.push_back(text.substr(match.begin, match.end - match.begin));
  return parts;
}

using Parts = std::vector<std::string>;

TEST(Regex, ClassesAreThoseOfOurTables) {
  // U+10D50 is a letter since Unicode 16, U+180E was a space once; the engine's own tables say otherwise.
  EXPECT_EQ(matches(R"(\p{L}+)", "a\U00010D501"), (Parts{"a\U00010D50"}));
  EXPECT_EQ(matches(R"(\s)", "\u180E\u3000"), (Parts{"\u3000"}));
  EXPECT_EQ(matches(R"([^\S\n]+)", "a \t\n"), (Parts{" \t"}));
  EXPECT_EQ(matches(R"(\P{N})", "1a"), (Parts{"a"}));
  EXPECT_EQ(matches(R"(\p{^N})", "1a"), (Parts{"a"}));
  EXPECT_EQ(matches(".", "\r\n\u2028"), (Parts{"\r", "\u2028"}));
}

TEST(Regex, FoldsCaseAsTheLibraryDoes) {
  EXPECT_EQ(matches("(?i:'s|k)", "'S '\u017F K\u212A s"), (Parts{"'S", "'\u017F", "K", "\u212A"}));
  EXPECT_EQ(matches("(?i:a)b", "Ab aB"), (Parts{"Ab"}));
}

TEST(Regex, EmptyMatchesAndIllFormedBytes) {
  EXPECT_EQ(matches("a*", "baac"), (Parts{"", "aa", ""}));  // before b, aa, behind c; none right behind aa
  EXPECT_EQ(matches(R"([^a])", "a\xFF\xE2\x82"), (Parts{"\xFF", "\xE2\x82"}));
}

struct Refusal {
  const char* pattern;
  const char* named;
};

const Refusal kRefusals[] = {
    {"", "pattern"},
    {R"(\p{Lu})", R"(\p{Lu})"},
    {R"(\p{Han}+)", R"(\p{Han})"},
    {R"(\d+)", R"(\d)"},
    {R"(\w)", R"(\w)"},
    {R"(\bx)", R"(\b)"},
    {R"(^a)", "\"^\""},
    {R"(a$)", "\"$\""},
    {R"((a)\1)", R"(\1)"},
    {R"((?<n>a))", "(?<n"},
    {R"((?i)a)", "(?i)"},
    {R"((?m:a))", "(?m:"},
    {R"((?i:ss))", "ss"},
    {R"((?i:fi))", "fi"},
    {R"((?i:\p{L}))", R"(\p{L})"},
    {"(?i:\u00E9)", "\u00E9"},
    {R"((?i:a+))", "a+"},
    {R"([a[b]])", "\"[\""},
    {R"([a&&b])", "&&"},
    {R"([[:alpha:]])", "\"[\""},
    {R"([])", "[]"},
    {R"([a)", "[a"},
    {R"([b-a])", "b-a"},
    {R"([\s-a])", R"(\s-)"},
    {R"((a)", "(a"},
    {R"(a))", "\")\""},
    {R"(*a)", "\"*\""},
    {R"(a**)", "a**"},
    {R"(a{2}+)", "a{2}+"},
    {R"(a{2}?)", "a{2}?"},
    {R"(a{3,2})", "{3,2}"},
    {R"(a{5000})", "at byte"},
    {R"(a{,})", "{,}"},
    {R"((?:a*)*)", "(?:a*)*"},
    {R"((?=a)+)", "(?=a)+"},
    {R"((?<=a+)b)", "lookbehind"},
    {R"(\xFF)", R"(\xFF)"},
    {R"(\x{110000})", R"(\x{110000})"},
    {R"(\uD800)", R"(\uD800)"},
    {"a\\", "\\"},
    {"\xFF", "pattern"},
};

TEST(Regex, WhatEnginesReadDifferentlyIsRefusedByName) {
  for (const Refusal& refusal : kRefusals) {
    std::string message;
    try {
      Regex regex(refusal.pattern, "t.json: pre_tokenizer.pattern");
    } catch (const DataError& error) {
      message = error.what();
    }
    EXPECT_NE(message.find("t.json: pre_tokenizer.pattern"), std::string::npos) << refusal.pattern;
    EXPECT_NE(message.find(refusal.named), std::string::npos) << refusal.pattern << ": " << message;
  }
  std::string deep(200, '(');
  EXPECT_THROW(translate_regex(deep + "a" + std::string(200, ')'), "t"), DataError);
  EXPECT_THROW(translate_regex(std::string(20000, 'a'), "t"), DataError);
}

TEST(Regex, AHostilePatternEndsWithItsLimitsName) {
  std::string message;
  try {
    matches("(?:a+)+[bc]", std::string(100, 'a'));
  } catch (const DataError& error) {
    message = error.what();
  }
  EXPECT_NE(message.find("steps"), std::string::npos) << message;
  EXPECT_EQ(matches("(?:a+)+[bc]", std::string(1000, 'a') + "b").size(), 1u) << "it is the text that makes it hostile";
}

TEST(Regex, ALongMatchNeedsNoStack) {
  const std::string text(1 << 20, 'a');
  EXPECT_EQ(matches(R"(\p{L}+)", text), Parts{text});
  EXPECT_EQ(matches(R"(\p{L}{1,2})", text).size(), text.size() / 2);
}

}  // namespace
}  // namespace dz::text
