// NFC against what the library makes of every code point (tests/golden/tokenizer/nfc.json).
#include "text/nfc.h"

#include <gtest/gtest.h>

#include "base/hash.h"
#include "text/golden.h"
#include "text/unicode.h"

namespace dz::text {
namespace {

std::string nfc(const std::string& text) {
  std::string out;
  Edits edits;
  return normalize_nfc(text, out, edits) ? out : text;
}

TEST(Nfc, EveryCodePointAmongOthersIsThatOfTheReference) {
  for (const auto& row : golden_json("nfc.json")["every_code_point"]) {
    const std::string before = row["before"];
    const std::string behind = row["behind"];
    Sha256 sha;
    for (uint32_t c = 0; c < 0x110000; ++c) {
      if (c >= 0xD800 && c < 0xE000) continue;
      std::string text = before;
      append_utf8(c, text);
      sha.update(nfc(text + behind) + "\n");
    }
    EXPECT_EQ(sha.hex(), row["sha256"].get<std::string>()) << before << " _ " << behind;
  }
}

TEST(Nfc, CompositionsAndMarksInAnyOrder) {
  const nlohmann::json golden = golden_json("nfc.json");
  Sha256 sha;
  for (const auto& pair : golden["pairs"]) sha.update(nfc(pair) + "\n");
  EXPECT_EQ(sha.hex(), golden["pairs_sha256"].get<std::string>());
  EXPECT_GT(golden["texts"].size(), 1000u);
  for (const auto& row : golden["texts"]) EXPECT_EQ(nfc(row["text"]), row["nfc"].get<std::string>()) << row["text"];
}

TEST(Nfc, NewerCodePointsThanUnicode9StayAsTheyAre) {
  // The version behind us may know more: U+11938 is a composition since Unicode 13, U+1ABF a mark of class 220.
  for (const char* text : {"\U00011935\U00011930", "q\u0315\u1ABF", "\u0C3C\u0334"}) EXPECT_EQ(nfc(text), text);
  EXPECT_EQ(nfc("q\u0315\u0327"), "q\u0327\u0315") << "an older mark does move";
}

TEST(Nfc, EditsLeadBackToTheInput) {
  std::string out;
  Edits edits;
  ASSERT_TRUE(normalize_nfc("xe\u0301y\xFF\u212B", out, edits));
  EXPECT_EQ(out, "x\u00E9y\xFF\u00C5");
  const size_t expected[] = {0, 1, 4, 4, 5, 6, 9, 9};
  for (size_t i = 0; i <= out.size(); ++i) EXPECT_EQ(edits.origin(i), expected[i]) << i;
  EXPECT_FALSE(normalize_nfc("caf\u00E9 \uD55C", out, edits));
}

TEST(Nfc, AMegabyteOfMarksIsNoTrouble) {
  std::string text = "a";
  for (int i = 0; i < 250000; ++i) text += i % 2 ? "\u0301" : "\u0327";
  const std::string sorted = nfc(text);
  EXPECT_LE(sorted.size(), text.size());
  EXPECT_EQ(nfc(sorted), sorted);
}

}  // namespace
}  // namespace dz::text
