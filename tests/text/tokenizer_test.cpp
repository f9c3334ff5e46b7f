#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "text/golden.h"
#include "text/tokenizer_model.h"
#include "text/unicode.h"

namespace dz::text {
namespace {

Tokenizer load_golden(const std::string& name) { return Tokenizer::load(golden_path(name)); }

Ids literal_ids(const Tokenizer& tokenizer, const std::string& text) { return tokenizer.encode_ordinary(text); }

TEST(Tokenizer, IdsOfEveryTrainedTokenizerAreThoseOfTheReference) {
  const nlohmann::json golden = golden_json("training.json");
  int64_t compared = 0;
  for (const auto& row : golden["tokenizers"]) {
    const Tokenizer tokenizer = load_golden(row["tokenizer"]);
    EXPECT_EQ(tokenizer.vocab_size(), row["vocab_size"].get<int64_t>());
    EXPECT_EQ(tokenizer.sha256(), row["sha256"].get<std::string>());
    Encoder encoder(tokenizer);  // one cache for all strings: what came before must not matter
    for (size_t i = 0; i < row["ids"].size(); ++i) {
      const std::string text = golden["strings"][i]["text"];
      Ids cached;
      encoder.encode(text, SpecialTokens::kParsed, cached);
      EXPECT_EQ(cached, row["ids"][i].get<Ids>()) << row["tokenizer"] << " string " << i;
      EXPECT_EQ(tokenizer.encode(text), cached);
      ++compared;
    }
  }
  EXPECT_EQ(compared, 2880);
}

TEST(Tokenizer, DecodesOfTheReference) {
  const Tokenizer tokenizer = load_golden("mixed-300.json");
  const nlohmann::json golden = golden_json("training.json");
  for (const auto& row : golden["decodes_with_first_tokenizer"]) {
    const Ids ids = row["ids"];
    EXPECT_EQ(tokenizer.decode(ids), row["text"].get<std::string>());
    EXPECT_EQ(tokenizer.decode(ids, true), row["text_skip_special"].get<std::string>());
  }
}

TEST(Tokenizer, Gpt2PatternAndAddedTokensOfEveryKind) {
  const Tokenizer tokenizer = load_golden("gpt2-style.json");
  const nlohmann::json golden = golden_json("gpt2-style-ids.json");
  for (const auto& row : golden["rows"]) {
    const std::string text = row["text"];
    EXPECT_EQ(tokenizer.encode(text), row["ids"].get<Ids>()) << text;
    const auto literal = row.contains("ids_special_as_text") ? row["ids_special_as_text"] : row["ids"];
    EXPECT_EQ(literal_ids(tokenizer, text), literal.get<Ids>()) << text;
    EXPECT_EQ(tokenizer.decode(row["ids"].get<Ids>()), row["decoded"].get<std::string>()) << text;
  }
}

// dolma2's texts through a tokenizer of this repository: the round trip needs no reference.
TEST(Tokenizer, TextsOfDolma2RoundTrip) {
  const Tokenizer tokenizer = load_golden("mixed-2048.json");
  for (const auto& row : golden_json("dolma2.json")["rows"]) {
    const std::string text = row["text"];
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
    EXPECT_EQ(tokenizer.decode(tokenizer.encode_ordinary(text)), text);
  }
}

TEST(Tokenizer, RandomBytesRoundTrip) {
  const Tokenizer tokenizer = load_golden("mixed-2048.json");
  Encoder encoder(tokenizer);
  TestRandom random(2);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes(random.below(200), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random.below(round % 3 ? 256 : 4) + (round % 3 ? 0 : 'a'));
    Ids ids;
    encoder.encode(bytes, SpecialTokens::kLiteral, ids);
    ASSERT_EQ(tokenizer.decode_bytes(ids), bytes);
    std::string valid = bytes;
    replace_invalid_utf8(valid);
    ASSERT_EQ(tokenizer.decode(ids), valid);
  }
}

// The heap for long pieces must agree with the scan for short ones: cut a text into pieces of every length around the switch.
TEST(Tokenizer, LongPiecesMergeLikeShortOnes) {
  const Tokenizer tokenizer = load_golden("mixed-2048.json");
  const auto slow = [&](std::string_view piece) {
    Ids ids;
    for (const char c : piece) ids.push_back(tokenizer.encode(std::string(1, c))[0]);
    while (true) {
      MergeTable::Merge best;
      size_t at = 0;
      for (size_t i = 0; i + 1 < ids.size(); ++i) {
        const MergeTable::Merge merge = tokenizer.model().merges.find(ids[i], ids[i + 1]);
        if (merge.rank < best.rank) {
          best = merge;
          at = i;
        }
      }
      if (best.rank == MergeTable::kNone) return ids;
      ids[at] = best.id;
      ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
  };
  TestRandom random(3);
  for (size_t size = 1; size < 150; ++size) {
    std::string piece(size, 'a');
    for (char& c : piece) c = "etaoinshrdlu"[random.below(12)];
    EXPECT_EQ(tokenizer.encode(piece), slow(piece)) << piece;
  }
}

TEST(Tokenizer, AMebibyteWithoutASplitIsNoTrouble) {
  const Tokenizer tokenizer = load_golden("mixed-2048.json");
  const std::string text(1 << 20, 'a');
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
}

TEST(Tokenizer, KnowsItsTokens) {
  const Tokenizer tokenizer = load_golden("mixed-300.json");
  EXPECT_EQ(tokenizer.end_of_text(), 0);
  EXPECT_EQ(tokenizer.find_added("<|pad|>"), 1);
  EXPECT_EQ(tokenizer.find_added("<|none|>"), std::nullopt);
  EXPECT_EQ(tokenizer.special_tokens(), (std::vector<std::string>{"<|endoftext|>", "<|pad|>"}));
  EXPECT_TRUE(tokenizer.is_special(1));
  EXPECT_FALSE(tokenizer.is_special(2));
  EXPECT_EQ(tokenizer.token_bytes(2), "!");
  EXPECT_EQ(tokenizer.token_bytes(-1), "");
  EXPECT_EQ(tokenizer.token_bytes(300), "");
  EXPECT_THROW(load_golden("code-noalphabet-400.json").end_of_text(), DataError);
}

}  // namespace
}  // namespace dz::text
