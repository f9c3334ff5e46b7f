#include "text/splitter.h"

#include <gtest/gtest.h>

#include "text/golden.h"
#include "text/unicode.h"

namespace dz::text {
namespace {

std::vector<std::string> split(Pattern pattern, std::string_view text) {
  std::vector<std::string> pieces;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = piece_end(pattern, text, begin);
    pieces.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return pieces;
}

TEST(Splitter, Cl100kPiecesOfTheReference) {
  const nlohmann::json golden = golden_json("dolma2.json");
  for (const auto& row : golden["rows"]) {
    std::vector<size_t> sizes;
    for (const std::string& piece : split(Pattern::kCl100k, row["text"].get<std::string>())) sizes.push_back(piece.size());
    EXPECT_EQ(sizes, row["piece_bytes"].get<std::vector<size_t>>()) << row["text"];
  }
}

using Pieces = std::vector<std::string>;

struct Case {
  Pattern pattern;
  const char* text;
  Pieces pieces;
};

// Read off the expressions by hand; each line is a place where a near rule gives something else.
const Case kCases[] = {
    {Pattern::kCl100k, "a  b", {"a", " ", " b"}},
    {Pattern::kCl100k, "a \n b", {"a", " \n", " b"}},
    {Pattern::kCl100k, "a\r\n\r\n  b", {"a", "\r\n\r\n", " ", " b"}},
    {Pattern::kCl100k, "x\t\ty", {"x", "\t", "\ty"}},
    {Pattern::kCl100k, "def f():\n    return  x", {"def", " f", "():\n", "   ", " return", " ", " x"}},
    {Pattern::kCl100k, "12345 6", {"123", "45", " ", "6"}},
    {Pattern::kCl100k, "I'LL 'search \u0027\u017F", {"I", "'LL", " '", "search", " '", "\u017F"}},
    {Pattern::kCl100k, "a\u0027\u017Fb", {"a", "'\u017F", "b"}},
    {Pattern::kCl100k, "!\n\n x", {"!\n\n", " x"}},
    {Pattern::kGpt2, "12345 6", {"12345", " 6"}},
    {Pattern::kGpt2, "I'LL it's", {"I", "'", "LL", " it", "'s"}},
    {Pattern::kGpt2, "a \n b", {"a", " \n", " b"}},
    {Pattern::kGpt2, "!\n\nx", {"!", "\n", "\n", "x"}},
};

TEST(Splitter, PiecesByHand) {
  for (const Case& c : kCases) EXPECT_EQ(split(c.pattern, c.text), c.pieces) << c.text;
}

TEST(Splitter, PatternsAreKnownByTheirExactSpelling) {
  for (const Pattern pattern : {Pattern::kGpt2, Pattern::kCl100k}) EXPECT_EQ(pattern_of(regex_of(pattern)), pattern);
  EXPECT_EQ(regex_of(Pattern::kCl100k), golden_json("training.json")["pattern"].get<std::string>());
  EXPECT_FALSE(pattern_of(std::string(regex_of(Pattern::kCl100k)) + "|x"));
}

TEST(Splitter, CoversRandomBytesWithoutGapOrCrash) {
  TestRandom random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random.below(40), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random.below(round % 2 ? 256 : 64));
    for (const Pattern pattern : {Pattern::kGpt2, Pattern::kCl100k}) {
      std::string joined;
      for (const std::string& piece : split(pattern, bytes)) {
        ASSERT_FALSE(piece.empty());
        joined += piece;
      }
      ASSERT_EQ(joined, bytes);
    }
  }
}

}  // namespace
}  // namespace dz::text
