#include "text/unicode.h"

#include <gtest/gtest.h>

#include "text/byte_alphabet.h"
#include "text/golden.h"

namespace dz::text {
namespace {

TEST(Unicode, ClassOfEveryCodePointIsThatOfTheReferenceEngine) {
  std::vector<CharClass> expected(0x110000, CharClass::kOther);
  const nlohmann::json classes = golden_json("unicode_classes.json");
  const std::pair<const char*, CharClass> kinds[] = {{"L", CharClass::kLetter}, {"N", CharClass::kNumber}, {"S", CharClass::kSpace}};
  for (const auto& [key, kind] : kinds)
    for (const auto& range : classes[key]["ranges"])
      for (uint32_t c = range[0]; c <= range[1].get<uint32_t>(); ++c) expected[c] = kind;
  int64_t different = 0;
  for (uint32_t c = 0; c < expected.size(); ++c) different += char_class(c) != expected[c];
  EXPECT_EQ(different, 0);
  // Near misses that other Unicode versions get wrong: U+180E was a space once, U+200B never was.
  EXPECT_EQ(char_class(0x180E), CharClass::kOther);
  EXPECT_EQ(char_class(0x200B), CharClass::kOther);
}

TEST(Unicode, OtherSetsOfTheLibrary) {
  const nlohmann::json classes = golden_json("unicode_classes.json");
  const std::pair<const char*, bool (*)(uint32_t)> kSets[] = {{"word", is_word}, {"numeric", is_numeric}};
  for (const auto& [key, contains] : kSets) {
    std::vector<bool> expected(0x110000);
    for (const auto& range : classes[key]["ranges"])
      for (uint32_t c = range[0]; c <= range[1].get<uint32_t>(); ++c) expected[c] = true;
    int64_t different = 0;
    for (uint32_t c = 0; c < expected.size(); ++c) different += contains(c) != expected[c];
    EXPECT_EQ(different, 0) << key;
  }
  for (uint32_t c = 0; c < 128; ++c) EXPECT_EQ(is_word(c), (c >= '0' && c <= '9') || c == '_' || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z')) << c;
  for (uint32_t c = 0; c < 0x110000; ++c) {
    ASSERT_TRUE(is_word(c) || char_class(c) != CharClass::kLetter) << c;
    ASSERT_TRUE(is_numeric(c) || char_class(c) != CharClass::kNumber) << c;
  }
}

TEST(Unicode, Utf8RoundTripsEveryCodePoint) {
  int64_t wrong = 0;
  for (uint32_t c = 0; c < 0x110000; ++c) {
    std::string text;
    append_utf8(c, text);
    const CodePoint back = decode_utf8(text, 0);
    const bool surrogate = c >= 0xD800 && c < 0xE000;
    wrong += surrogate ? back.value != kInvalid : back.value != c || back.size != text.size();
  }
  EXPECT_EQ(wrong, 0);
}

TEST(Unicode, IllFormedPartsAreReplacedAsPythonDoes) {
  const nlohmann::json golden = golden_json("dolma2.json");
  for (const auto& row : golden["invalid_utf8"]) {
    std::string text = from_hex(row["bytes_hex"]);
    EXPECT_EQ(replace_invalid_utf8(text), row["replacements"].get<int64_t>()) << row["bytes_hex"];
    EXPECT_EQ(text, row["replaced"].get<std::string>()) << row["bytes_hex"];
  }
}

TEST(Unicode, WellFormedTextIsLeftAlone) {
  std::string text = golden_text("corpus-mixed.txt");
  const std::string before = text;
  EXPECT_EQ(replace_invalid_utf8(text), 0);
  EXPECT_EQ(text, before);
  text[text.find("\xE3")] = '\x80';  // the first byte of a kana: now there is something to replace
  EXPECT_GT(replace_invalid_utf8(text), 0);
}

TEST(ByteAlphabet, SpellsEveryByteInItsOwnWay) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  const std::string spelling = spell_bytes(bytes);
  EXPECT_EQ(bytes_of_spelling(spelling), bytes);
  EXPECT_EQ(spell_bytes(" \n"), "\u0120\u010A");
  EXPECT_EQ(bytes_of_spelling("a b"), std::nullopt);  // a real space spells no byte
}

}  // namespace
}  // namespace dz::text
