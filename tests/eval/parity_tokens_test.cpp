// The files of tokens that two models are compared on.
#include "eval/parity_tokens.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "eval/parity_files.h"
#include "model/golden.h"

namespace dz::eval::test {
namespace {

using Ids = std::vector<int32_t>;

void write(const fs::path& path, std::string_view bytes) {
  File file = File::create(path);
  file.write(bytes);
  file.close();
}

template <class V>
std::string bytes_of(const std::vector<V>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(V)};
}

TEST(ParityTokens, ALineIsASequence) {
  const Folder folder;
  write(folder / "ids.txt", "1 2 3\n\n{\"ids\": [4]}\n{\"ids\": []}\n5,6\n");
  const std::vector<TokenSequence> sequences = read_token_sequences(folder / "ids.txt", {.vocab_size = 10});
  ASSERT_EQ(sequences.size(), 3u);
  EXPECT_EQ(sequences[0].name, "S1");
  EXPECT_EQ(sequences[0].tokens, (Ids{1, 2, 3}));
  EXPECT_EQ(sequences[2].name, "S3");
  EXPECT_EQ(sequences[2].tokens, (Ids{5, 6}));
  EXPECT_THROW(read_token_sequences(folder / "ids.txt", {.vocab_size = 6}), DataError) << "6 is beyond";
}

TEST(ParityTokens, EveryInputIdsOfASafetensorsFile) {
  const std::vector<TokenSequence> sequences = read_token_sequences(model::test::golden("gqa/expected.safetensors"), {.vocab_size = 96});
  ASSERT_EQ(sequences.size(), 4u);
  for (const TokenSequence& sequence : sequences) {
    EXPECT_EQ(sequence.instances, 2);
    EXPECT_EQ("T" + std::to_string(sequence.seq()), sequence.name);
  }
  const Folder folder;
  for (const int64_t wrong : {int64_t{-1}, int64_t{96}, (int64_t{1} << 32) + 5}) {
    Tensors().add("x.input_ids", "I64", {2}, std::vector<int64_t>{1, wrong}).write(folder / "x.safetensors");
    EXPECT_THROW(read_token_sequences(folder / "x.safetensors", {.vocab_size = 96}), DataError) << wrong;
  }
  Tensors().add("x.input_ids", "F32", {2}, std::vector<float>{1, 2}).write(folder / "x.safetensors");
  EXPECT_THROW(read_token_sequences(folder / "x.safetensors", {.vocab_size = 96}), DataError);
  Tensors().add("x.input_ids", "I64", {2, 0}, std::vector<int64_t>{}).write(folder / "x.safetensors");
  EXPECT_TRUE(read_token_sequences(folder / "x.safetensors", {.vocab_size = 96}).empty());
}

TEST(ParityTokens, ATokenFileIsCutIntoSequences) {
  const Folder folder;
  std::vector<uint16_t> narrow;
  for (uint16_t i = 0; i < 70; ++i) narrow.push_back(static_cast<uint16_t>(i * 7 % 90));
  write(folder / "t.npy", bytes_of(narrow));
  const std::vector<TokenSequence> sequences = read_token_sequences(folder / "t.npy", {.vocab_size = 96, .length = 20, .sequences = 9});
  ASSERT_EQ(sequences.size(), 3u) << "the last 10 tokens are no whole sequence";
  EXPECT_EQ(sequences[2].tokens, Ids(narrow.begin() + 40, narrow.begin() + 60));
  EXPECT_EQ(read_token_sequences(folder / "t.npy", {.vocab_size = 96, .length = 20, .sequences = 2}).size(), 2u);
  EXPECT_TRUE(read_token_sequences(folder / "t.npy", {.vocab_size = 96, .length = 71}).empty());
  const std::vector<uint32_t> wide(narrow.begin(), narrow.end());
  write(folder / "w.npy", bytes_of(wide));
  EXPECT_EQ(read_token_sequences(folder / "w.npy", {.vocab_size = 100278, .length = 70})[0].tokens, Ids(narrow.begin(), narrow.end()));
  EXPECT_THROW(read_token_sequences(folder / "w.npy", {.vocab_size = 96, .length = 20}), DataError) << "read with the wrong width";
  EXPECT_THROW(read_token_sequences(folder / "missing.npy", {.vocab_size = 96}), InputError);
  EXPECT_THROW(read_token_sequences(folder / "missing.txt", {.vocab_size = 96}), InputError);
}

}  // namespace
}  // namespace dz::eval::test
