#include "text/trainer.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/hash.h"
#include "text/golden.h"
#include "text/tokenizer.h"

namespace dz::text {
namespace {

TrainerOptions options_of(const nlohmann::json& row) {
  TrainerOptions options;
  options.vocab_size = row["vocab_size_asked"];
  options.special_tokens = row["special_tokens"].get<std::vector<std::string>>();
  options.initial_alphabet = row["initial_alphabet"];
  options.min_frequency = row["options"].value("min_frequency", 0);
  options.max_token_length = row["options"].value("max_token_length", 0);
  return options;
}

WordCounts counts_of(const std::string& text, bool lines) {
  WordCounts counts;
  lines ? counts.add_lines(text) : counts.add_text(text);
  return counts;
}

// The option limit_alphabet is not offered: the library breaks its ties by hash order.
bool is_offered(const nlohmann::json& row) { return !row["options"].contains("limit_alphabet"); }

TEST(Trainer, FilesAreThoseOfTheLibraryByteForByte) {
  int64_t compared = 0;
  const nlohmann::json golden = golden_json("training.json");
  for (const auto& row : golden["tokenizers"]) {
    if (!is_offered(row)) continue;
    const WordCounts counts = counts_of(golden_text(row["corpus"]), row["feed"] == "lines");
    const std::string json = to_tokenizer_json(train_bpe(counts, options_of(row)));
    EXPECT_EQ(json, golden_text(row["tokenizer"])) << row["tokenizer"];
    EXPECT_EQ(sha256_hex(json), row["sha256"].get<std::string>());
    ++compared;
  }
  EXPECT_EQ(compared, 15);
}

// Controls: the comparison above must notice what a user can get wrong.
TEST(Trainer, FeedCorpusAndOptionsMatter) {
  const std::string text = golden_text("corpus-mixed.txt");
  TrainerOptions options{.vocab_size = 512, .special_tokens = {"<|endoftext|>", "<|pad|>"}};
  const std::string whole = to_tokenizer_json(train_bpe(counts_of(text, false), options));
  EXPECT_EQ(whole, golden_text("mixed-512.json"));
  EXPECT_NE(to_tokenizer_json(train_bpe(counts_of(text, true), options)), whole);
  EXPECT_NE(to_tokenizer_json(train_bpe(counts_of(text.substr(0, text.size() - 600), false), options)), whole);
  options.special_tokens.pop_back();
  EXPECT_NE(to_tokenizer_json(train_bpe(counts_of(text, false), options)), whole);
}

TEST(Trainer, PartsCountedApartGiveTheSameFile) {
  const std::string text = golden_text("corpus-mixed.txt");
  const TrainerOptions options{.vocab_size = 512, .special_tokens = {"<|endoftext|>", "<|pad|>"}};
  std::vector<WordCounts> parts(3);
  size_t line = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    parts[line++ % 3].add_lines(std::string_view(text).substr(begin, end - begin));
    begin = end;
  }
  WordCounts joined;
  for (const size_t part : {2, 0, 1}) joined.merge(parts[part]);
  EXPECT_EQ(to_tokenizer_json(train_bpe(joined, options)), golden_text("mixed-lines-512.json"));
}

TEST(Trainer, SpecialTokensInTheTextAreText) {
  WordCounts counts;
  for (int i = 0; i < 9; ++i) counts.add_text("<|endoftext|>");
  const TrainedVocabulary vocabulary = train_bpe(counts, {.vocab_size = 300});
  const Tokenizer tokenizer = Tokenizer::parse(to_tokenizer_json(vocabulary), "t");
  EXPECT_EQ(tokenizer.encode("<|endoftext|>"), Ids{0});
  EXPECT_EQ(tokenizer.encode_ordinary("<|endoftext|>").size(), 3u);  // "<|", "endoftext", "|>"
}

TEST(Trainer, EmptyTextGivesTheBytes) {
  const TrainedVocabulary vocabulary = train_bpe(WordCounts(), {.vocab_size = 4096});
  EXPECT_EQ(vocabulary.tokens.size(), 257u);
  EXPECT_TRUE(vocabulary.merges.empty());
  EXPECT_THROW(train_bpe(WordCounts(), {.vocab_size = 256}), ConfigError);
}

TEST(Trainer, OddSpecialTokensAreWrittenSoThatTheyCanBeRead) {
  const std::vector<std::string> special = {"<|endoftext|>", "a\"b\\c\n\t\x01\x7F", "é 漢"};
  const std::string json = to_tokenizer_json(train_bpe(WordCounts(), {.vocab_size = 300, .special_tokens = special}));
  const Tokenizer tokenizer = Tokenizer::parse(json, "t");
  EXPECT_EQ(tokenizer.special_tokens(), special);
  EXPECT_EQ(tokenizer.encode("x" + special[1] + special[2]).size(), 3u);
}

}  // namespace
}  // namespace dz::text
