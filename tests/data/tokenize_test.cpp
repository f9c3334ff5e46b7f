#include "data/tokenize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "text/files.h"

namespace dz::data {
namespace {

using text::TestFolder;

text::Tokenizer tokenizer() { return text::Tokenizer::load(std::string(DZ_GOLDEN) + "/tokenizer/mixed-512.json"); }

std::map<std::string, std::string> files_of(const fs::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(directory)) files[entry.path().filename()] = read_file(entry.path());
  return files;
}

std::vector<int32_t> tokens_of(const fs::path& directory, int64_t source, Split split) {
  const TokenShards shards(directory);
  std::vector<int32_t> ids(static_cast<size_t>(shards.manifest().sources.at(static_cast<size_t>(source)).stream(split).tokens));
  shards.read(source, split, 0, ids);
  return ids;
}

// Documents of very different length, so that threads finish in another order than they began.
TestFolder make_corpus() {
  TestFolder folder;
  const std::string mixed = read_file(std::string(DZ_GOLDEN) + "/tokenizer/corpus-mixed.txt");
  std::string lines;
  for (int i = 0; i < 200; ++i) {
    const auto size = static_cast<size_t>(i % 7 ? 20 + i : 20000);
    const std::string document = "document " + std::to_string(i) + " " + mixed.substr(0, mixed.find(' ', size));
    folder.write("a/" + std::to_string(1000 + i) + ".txt", document);
  }
  for (int i = 0; i < 50; ++i) lines += "{\"text\":\"line " + std::to_string(i) + "\"}\n";
  folder.write("b.jsonl", lines);
  return folder;
}

TEST(Tokenize, ShardsDoNotDependOnThreads) {
  const TestFolder corpus = make_corpus();
  const TestFolder out;
  const std::vector<TextSource> sources = {{"a", {corpus.path() / "a"}}, {"b", {corpus.path() / "b.jsonl"}}};
  for (const int threads : {1, 2, 3})
    tokenize(tokenizer(), sources, out.path() / std::to_string(threads), {.held_out = 0.1, .threads = threads, .extract = {}});
  const auto one = files_of(out.path() / "1");
  EXPECT_EQ(one.size(), 5u);  // two splits of two sources, and the manifest
  EXPECT_EQ(files_of(out.path() / "2"), one);
  EXPECT_EQ(files_of(out.path() / "3"), one);
  // Control: another share is other data.
  tokenize(tokenizer(), sources, out.path() / "other", {.held_out = 0.2, .threads = 1, .extract = {}});
  EXPECT_NE(files_of(out.path() / "other"), one);
}

TEST(Tokenize, DocumentsEndWithEosAndComeBackAsText) {
  const TestFolder corpus;
  const TestFolder out;
  corpus.write("s/1.txt", "Hello <|endoftext|> there\n");
  corpus.write("s/2.txt", "  ");
  corpus.write("s/3.txt", "caf\u00E9 \xFF");
  const text::Tokenizer bpe = tokenizer();
  const TokenizeResult result = tokenize(bpe, {{"s", {corpus.path() / "s"}}}, out.path() / "t", {});
  const std::vector<int32_t> ids = tokens_of(out.path() / "t", 0, Split::kTrain);
  EXPECT_EQ(bpe.decode(ids, true), "Hello <|endoftext|> there\ncaf\u00E9 \uFFFD");
  EXPECT_EQ(std::count(ids.begin(), ids.end(), bpe.end_of_text()), 2);
  EXPECT_EQ(ids.back(), bpe.end_of_text());
  const TokenizeCounts& counts = result.sources.at(0);
  EXPECT_EQ(counts.documents_with_special_text, 1);
  EXPECT_EQ(counts.documents[0], 2);
  EXPECT_EQ(counts.tokens[0], static_cast<int64_t>(ids.size()));
  EXPECT_EQ(counts.text.empty_documents, 1);
  EXPECT_EQ(counts.text.replaced, 1);
  EXPECT_EQ(result.manifest.tokenizer_sha256, bpe.sha256());
}

TEST(Tokenize, HeldOutIsAPropertyOfTheText) {
  int64_t held = 0;
  for (int i = 0; i < 20000; ++i) {
    const uint64_t hash = held_out_hash("document " + std::to_string(i));
    const bool two = is_held_out(hash, 0.02);
    held += two;
    EXPECT_TRUE(!two || is_held_out(hash, 0.05));  // a larger share only adds
    EXPECT_FALSE(is_held_out(hash, 0.0));
  }
  EXPECT_NEAR(static_cast<double>(held), 400, 80);
}

TEST(Tokenize, EqualDocumentsAreNeverOnBothSides) {
  const TestFolder corpus = make_corpus();
  const TestFolder out;
  const std::vector<TextSource> sources = {{"one", {corpus.path() / "a"}}, {"two", {corpus.path() / "a"}}};
  tokenize(tokenizer(), sources, out.path() / "t", {.held_out = 0.1, .threads = 2, .extract = {}});
  for (const Split split : kSplits) EXPECT_EQ(tokens_of(out.path() / "t", 0, split), tokens_of(out.path() / "t", 1, split));
}

TEST(Tokenize, ASmallSourceHoldsOutItsDocumentOfLowestHash) {
  const TestFolder corpus;
  const TestFolder out;
  std::string lowest;
  for (int i = 0; i < 9; ++i) {
    const std::string document = "document " + std::to_string(i % 8);  // the first one twice
    corpus.write("s/" + std::to_string(i) + ".txt", document);
    ASSERT_FALSE(is_held_out(held_out_hash(document), 0.0001));
    if (lowest.empty() || held_out_hash(document) < held_out_hash(lowest)) lowest = document;
  }
  corpus.write("one/1.txt", "alone");
  const text::Tokenizer bpe = tokenizer();
  tokenize(bpe, {{"s", {corpus.path() / "s"}}, {"one", {corpus.path() / "one"}}}, out.path() / "t",
           {.held_out = 0.0001, .threads = 1, .extract = {}});
  const std::string held = bpe.decode(tokens_of(out.path() / "t", 0, Split::kHeldOut));
  const std::string trained = bpe.decode(tokens_of(out.path() / "t", 0, Split::kTrain));
  EXPECT_EQ(held.substr(0, held.find('<')), lowest);
  EXPECT_EQ(trained.find(lowest), std::string::npos);  // both copies are held out when it is the one that is there twice
  EXPECT_EQ(std::count(trained.begin(), trained.end(), 'd') + std::count(held.begin(), held.end(), 'd'), 9 * 2);
  EXPECT_EQ(bpe.decode(tokens_of(out.path() / "t", 1, Split::kTrain)), "alone<|endoftext|>");
}

TEST(Tokenize, RunsAgainButOverNothingForeign) {
  const TestFolder corpus = make_corpus();
  const TestFolder out;
  const std::vector<TextSource> sources = {{"b", {corpus.path() / "b.jsonl"}}};
  tokenize(tokenizer(), sources, out.path() / "t", {});
  const auto before = files_of(out.path() / "t");
  tokenize(tokenizer(), sources, out.path() / "t", {});
  EXPECT_EQ(files_of(out.path() / "t"), before);
  // A failing run leaves the old result as it was.
  corpus.write("bad.jsonl", "{\"text\":\"a\"}\nnonsense\n");
  EXPECT_THROW(tokenize(tokenizer(), {{"bad", {corpus.path() / "bad.jsonl"}}}, out.path() / "t", {}), DataError);
  EXPECT_EQ(files_of(out.path() / "t"), before);
  EXPECT_THROW(tokenize(tokenizer(), sources, corpus.path() / "a", {}), CreateError);
  EXPECT_THROW(tokenize(tokenizer(), {{"none", {out.path()}}}, out.path() / "u", {}), DataError);
}

}  // namespace
}  // namespace dz::data
