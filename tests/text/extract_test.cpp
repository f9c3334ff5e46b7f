#include "text/extract.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/thread_pool.h"
#include "text/byte_stream.h"
#include "text/corpus.h"
#include "text/files.h"
#include "text/golden.h"
#include "text/trainer.h"

namespace dz::text {
namespace {

using Texts = std::vector<std::string>;

Texts read_all(DocumentReader& reader) {
  Texts texts;
  for (std::string text; reader.next(text);) texts.push_back(text);
  return texts;
}

Texts read_all(const fs::path& path, ExtractOptions options = {}) {
  DocumentReader reader({path}, std::move(options));
  return read_all(reader);
}

std::string message_of(const fs::path& path, ExtractOptions options = {}) {
  try {
    read_all(path, std::move(options));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Extract, WalksAFolderInBytewiseOrder) {
  const TestFolder folder;
  folder.write("b/2.txt", "b2");
  folder.write("b.txt", "b");
  folder.write("B.md", "B");
  folder.write("a.rst.gz", gzip("a"));
  folder.write("a-.pod.zst", zstd("a-"));
  folder.write("c.HTML", "<p>c</p>");
  folder.write("skipped.bin", "x");
  folder.write("README", "x");
  folder.write("empty.txt", " \n\t");
  folder.write("z.jsonl", "{\"text\": \"z1\"}\n\n{\"text\": \"z2\"}");
  fs::create_directory_symlink(folder.path(), folder.path() / "loop");
  DocumentReader reader({folder.path()});
  // '-' < '.' < '/', and capitals come first.
  EXPECT_EQ(read_all(reader), (Texts{"B", "a-", "a", "b", "b2", "c\n", "z1", "z2"}));
  EXPECT_EQ(reader.counts().files, 8);
  EXPECT_EQ(reader.counts().documents, 8);
  EXPECT_EQ(reader.counts().empty_documents, 1);
  EXPECT_GE(reader.counts().skipped_files, 2);
  EXPECT_EQ(reader.counts().bytes, 13);
}

TEST(Extract, KeepsPlainTextByteForByteAndCountsRepairs) {
  const TestFolder folder;
  const std::string text = std::string("\xEF\xBB\xBF one\r\n\0two \n\n", 15);
  EXPECT_EQ(read_all(folder.write("named-directly.log", text)), Texts{text});
  DocumentReader reader({folder.write("bad.txt", "a\xED\xA0\x80z\xF0\x9F\x99")});
  EXPECT_EQ(read_all(reader), Texts{"a\uFFFD\uFFFD\uFFFDz\uFFFD"});
  EXPECT_EQ(reader.counts().replaced, 4);
}

TEST(Extract, CompressedFilesOfSeveralParts) {
  const TestFolder folder;
  const std::string text = golden_text("corpus-mixed.txt");
  const std::string_view view = text;
  EXPECT_EQ(read_all(folder.write("a.txt.gz", gzip(view.substr(0, 9000)) + gzip("") + gzip(view.substr(9000)))), Texts{text});
  EXPECT_EQ(read_all(folder.write("a.txt.zst", zstd(view.substr(0, 9000)) + zstd("") + zstd(view.substr(9000)))), Texts{text});
  // Every size of the caller's buffer: text may wait inside a decoder when all input has been taken.
  for (const char* name : {"a.txt.gz", "a.txt.zst"}) {
    for (const size_t size : {1, 7, 4096, 1 << 20}) {
      const auto stream = ByteStream::open(folder.path() / name);
      std::string all, block(size, '\0');
      while (const size_t count = stream->read(block.data(), size)) all.append(block, 0, count);
      EXPECT_EQ(all, text) << name << " " << size;
    }
  }
}

TEST(Extract, DamagedCompressionIsADataErrorWithThePath) {
  const TestFolder folder;
  const std::string text = golden_text("corpus-code.txt");
  for (const auto& [ending, good] : {std::pair{std::string(".gz"), gzip(text)}, std::pair{std::string(".zst"), zstd(text)}}) {
    const auto message = [&](const std::string& bytes) { return message_of(folder.write("f.txt" + ending, bytes)); };
    EXPECT_EQ(message(good), "");
    for (const size_t size : {size_t{0}, size_t{5}, good.size() / 2, good.size() - 1})
      EXPECT_NE(message(good.substr(0, size)).find("f.txt" + ending + " before compressed byte"), std::string::npos) << ending << size;
    EXPECT_NE(message(good + "garbage"), "");
    std::string flipped = good;
    flipped[good.size() - 3] = static_cast<char>(flipped[good.size() - 3] ^ 1);  // in gzip's length, in the last block of zstd
    if (ending == ".gz") {
      EXPECT_NE(message(flipped), "");
    }
    TestRandom random(6);
    for (int round = 0; round < 100; ++round) {
      std::string bad = good;
      bad[random.below(bad.size())] = static_cast<char>(random.below(256));
      message(bad);  // any text or any DataError, but no crash
    }
  }
}

TEST(Extract, AnArchiveThatGrowsWithoutEndIsCutOff) {
  const TestFolder folder;
  const fs::path bomb = folder.write("bomb.txt.gz", gzip(std::string(50 << 20, 'a')));
  EXPECT_LT(fs::file_size(bomb), 100'000u);
  EXPECT_NE(message_of(bomb, {.max_document_bytes = 1 << 20}).find("more than 1048576 bytes"), std::string::npos);
  const fs::path lines = folder.write("bomb.jsonl.gz", gzip(std::string(50 << 20, 'a')));
  EXPECT_NE(message_of(lines, {.max_document_bytes = 1 << 20}).find("bomb.jsonl.gz:1"), std::string::npos);
}

TEST(Extract, JsonLines) {
  const TestFolder folder;
  const auto texts = [&](const std::string& lines, const char* field = "text") { return read_all(folder.write("f.jsonl", lines), {.field = field}); };
  EXPECT_EQ(texts("\xEF\xBB\xBF{\"id\":1,\"text\":\"a\\nb \\u00e9 \\ud83d\\ude42\"}\r\n{\"text\":\"\"}\n"), Texts{"a\nb \u00E9 \U0001F642"});
  EXPECT_EQ(texts("{\"body\":{\"text\":\"no\"},\"text\":\"yes\"}\n"), Texts{"yes"});
  EXPECT_EQ(texts("{\"content\":\"c\"}", "content"), Texts{"c"});
  EXPECT_EQ(texts("{\"text\":\"half \\ud83d, \\\\ud83d \\ude42 \xFF\"}"), Texts{"half \uFFFD, \\ud83d \uFFFD \uFFFD"});
}

TEST(Extract, BadJsonLinesNamePathAndLine) {
  const TestFolder folder;
  for (const char* bad : {"{\"text\": 1}", "{\"txt\": \"a\"}", "{\"text\": \"a\"", "[1]", "nonsense", "{\"text\": null}", "{\"text\":\"\\ud8\"}"}) {
    const std::string message = message_of(folder.write("f.jsonl", "{\"text\":\"good\"}\n" + std::string(bad) + "\n"));
    EXPECT_NE(message.find("f.jsonl:2"), std::string::npos) << bad << ": " << message;
  }
  EXPECT_NE(message_of(folder.write("f.jsonl", std::string(100'000, '['))), "");
}

TEST(Extract, MissingPath) {
  const TestFolder folder;
  EXPECT_THROW(read_all(folder.path() / "none"), InputError);
  EXPECT_TRUE(read_all(folder.path()).empty());
}

TEST(Corpus, CountsDoNotDependOnThreadsAndAreThoseOfTheWholeText) {
  const TestFolder folder;
  std::string text;
  while (text.size() < 1'500'000) text += golden_text("corpus-mixed.txt") + golden_text("corpus-code.txt");
  const fs::path file = folder.write("big.txt", text);
  WordCounts lines, whole;
  lines.add_lines(text);
  whole.add_text(text);
  ASSERT_NE(lines.sorted(), whole.sorted());
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    DocumentReader one({file});
    EXPECT_EQ(count_words(one, Feed::kLines, pool).sorted(), lines.sorted());
    DocumentReader two({file});
    EXPECT_EQ(count_words(two, Feed::kDocuments, pool).sorted(), whole.sorted());
  }
}

}  // namespace
}  // namespace dz::text
