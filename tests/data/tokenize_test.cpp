#include "data/tokenize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "data/temporary.h"
#include "text/byte_stream.h"
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
  EXPECT_EQ(one.size(), 9u);  // tokens and documents of two splits of two sources, and the manifest
  EXPECT_EQ(files_of(out.path() / "2"), one);
  EXPECT_EQ(files_of(out.path() / "3"), one);
  // Control: another share is other data.
  tokenize(tokenizer(), sources, out.path() / "other", {.held_out = 0.2, .threads = 1, .extract = {}});
  EXPECT_NE(files_of(out.path() / "other"), one);
}

// Row 28: 20 times with 8 threads and batches of other sizes.
TEST(Tokenize, TheSameBytesTwentyTimes) {
  const TestFolder corpus;
  const test::TemporaryDirectory out(test::memory_directory());
  std::string lines;
  for (int i = 0; i < 300; ++i)
    lines += "{\"id\":" + std::to_string(i) + ",\"text\":\"" + std::string(static_cast<size_t>(1 + i * 7 % 90), 'a') + "\"}\n";
  const std::vector<TextSource> sources = {{"s", {corpus.write("s.jsonl", lines)}}};
  std::map<std::string, std::string> first;
  for (int round = 0; round < 20; ++round) {
    TokenizeSettings settings{.held_out = 0.1, .threads = 8, .extract = {}};
    settings.batch_bytes = 1 + round * round * 200;
    tokenize(tokenizer(), sources, out / "t", settings);
    if (round == 0) first = files_of(out / "t");
    EXPECT_EQ(files_of(out / "t"), first) << round;
  }
}

// Row 157 and Dolma's rules from the text on.
TEST(Tokenize, SpecialTextIsTextOrTheToken) {
  const TestFolder corpus, out;
  const fs::path file =
      corpus.write("s.jsonl", "{\"text\":\"a<|endoftext|>b\"}\n{\"text\":\"c<|endoftext|>\"}\n{\"text\":\"\"}\n{\"text\":\" d \"}\n");
  const text::Tokenizer bpe = tokenizer();
  const int32_t eos = bpe.end_of_text();
  const auto ids = [&](const TokenizeSettings& settings, TokenizeCounts* counts = nullptr) {
    const TokenizeResult result = tokenize(bpe, {{"s", {file}}}, out.path() / "t", settings);
    if (counts) *counts = result.sources[0];
    return tokens_of(out.path() / "t", 0, Split::kTrain);
  };
  const auto joined = [&](const std::vector<std::string>& texts, bool bos) {
    std::vector<int32_t> all;
    for (const std::string& text : texts) {
      if (bos) all.push_back(eos);
      const std::vector<int32_t> part = bpe.encode(text);
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  };
  TokenizeSettings settings;
  TokenizeCounts counts;
  const std::vector<int32_t> literal = ids(settings, &counts);
  EXPECT_EQ(std::count(literal.begin(), literal.end(), eos), 3);
  EXPECT_EQ(bpe.decode(literal, true), "a<|endoftext|>bc<|endoftext|> d ");
  EXPECT_EQ(counts.documents_with_eos_text, 2);
  EXPECT_EQ(counts.text.empty_documents, 1);
  settings.special = text::SpecialTokens::kParsed;
  EXPECT_EQ(ids(settings, &counts), joined({"a<|endoftext|>b<|endoftext|>", "c<|endoftext|>", " d <|endoftext|>"}, false));
  EXPECT_EQ(counts.documents_with_eos_text, 2);
  EXPECT_EQ(counts.documents[0], 3);
  settings.extract.strip = true;
  settings.bos = eos;
  EXPECT_EQ(ids(settings), joined({"a<|endoftext|>b<|endoftext|>", "c<|endoftext|>", "d<|endoftext|>"}, true));
  settings.bos.reset();
  settings.eos = 7;
  EXPECT_EQ(ids(settings).back(), 7);
}

TEST(Tokenize, IdsAndPlacesReachTheListOfDocuments) {
  const TestFolder corpus, out;
  corpus.write("s/a.jsonl", "{\"meta\":{\"name\":\"x,1\"},\"doc\":{\"body\":\"ab\"}}\n\n{\"doc\":{\"body\":\"c\"}}\n");
  corpus.write("s/b.txt", "d");
  TokenizeSettings settings{.extract = {.field = "doc.body", .id_field = "meta.name"}};
  tokenize(tokenizer(), {{"s", {corpus.path() / "s"}}}, out.path() / "t", settings);
  const auto stream = text::ByteStream::open(out.path() / "t/s.train-00000.csv.gz");
  std::string rows(4096, '\0');
  rows.resize(stream->read(rows.data(), rows.size()));
  const std::string a = (corpus.path() / "s/a.jsonl").string(), b = (corpus.path() / "s/b.txt").string();
  EXPECT_EQ(rows, "0,2,\"x,1\"," + a + ",1\n2,4,," + a + ",3\n4,6,," + b + ",1\n");
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

// Of a source in which nothing falls to the share, copies of the chosen document stay on one side, however many there are.
TEST(HeldOut, ManyCopiesAreDecidedAtOnce) {
  const int64_t most = HeldOutChooser::kMostCopies;
  for (const bool others : {false, true}) {
    std::array<int64_t, 2> copies{}, rest{};
    HeldOutChooser chooser(1e-9, [&](Split split, const std::vector<int32_t>& ids, const DocumentPlace&) {
      ++(ids[0] == 1 ? copies : rest)[static_cast<size_t>(split)];
    });
    const uint64_t low = uint64_t{1} << 40, high = uint64_t{1} << 50;
    if (others) chooser.add(high, {2}, {});
    for (int64_t i = 0; i < most + 5; ++i) {
      chooser.add(low, {1}, {});
      if (i % 1000 == 0 && i > 0) {  // across a restart
        HeldOutChooser::State state = chooser.state();
        EXPECT_LE(static_cast<int64_t>(state.copies.size()), most);
        chooser.restore(std::move(state));
      }
    }
    chooser.add(high, {2}, {});
    chooser.end();
    EXPECT_EQ(copies, others ? (std::array<int64_t, 2>{0, most + 5}) : (std::array<int64_t, 2>{most + 5, 0}));
    EXPECT_EQ(rest, others ? (std::array<int64_t, 2>{2, 0}) : (std::array<int64_t, 2>{0, 1}));
  }
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
