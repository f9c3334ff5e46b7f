// What a corpus run needs of the reader: ids and places, Dolma's strip, lines left out, and going on in the middle.
#include "text/corpus.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "text/files.h"
#include "text/golden.h"
#include "text/json_line.h"
#include "text/strip.h"
#include "text/unicode.h"

namespace dz::text {
namespace {

std::vector<Document> read_all(DocumentReader& reader) {
  std::vector<Document> documents;
  for (Document document; reader.next(document);) documents.push_back(document);
  return documents;
}

std::string flat(const std::vector<Document>& documents) {
  std::string out;
  for (const Document& d : documents) out += std::to_string(d.file) + ":" + std::to_string(d.line) + ":" + d.id + ":" + d.text + "\n";
  return out;
}

std::string parsed(const std::string& line, const JsonLineParser::Fields& fields) {
  JsonLineParser parser(fields);
  std::string text, id;
  int64_t replaced = 0;
  parser.parse(line, "f.jsonl:1", text, id, replaced);
  return text + "|" + id;
}

// Rows of Python itself, and every code point in turn.
TEST(Strip, IsPythons) {
  const nlohmann::json golden = golden_json("python_space.json");
  for (const nlohmann::json& row : golden.at("rows")) {
    std::string text = row.at(0).get<std::string>();
    strip_like_python(text);
    EXPECT_EQ(text, row.at(1).get<std::string>()) << row;
  }
  const std::vector<uint32_t> spaces = golden.at("spaces").get<std::vector<uint32_t>>();
  std::vector<uint32_t> found;
  for (uint32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    append_utf8(c, text);
    strip_like_python(text);
    if (text.empty()) found.push_back(c);
  }
  EXPECT_EQ(found, spaces);
}

TEST(JsonLine, FieldPathsAndIds) {
  EXPECT_EQ(parsed(R"({"id":"a,\"b\"","text":"t"})", {}), "t|a,\"b\"");
  EXPECT_EQ(parsed(R"({"doc":{"body":"b","meta":{"n":7}},"text":1})", {.field = "doc.body", .id_field = "doc.meta.n"}), "b|7");
  EXPECT_EQ(parsed(R"({"doc":{"body":"b"},"doc.body":"whole"})", {.field = "doc.body"}), "whole|");
  EXPECT_EQ(parsed(R"({"a.b":{"c.d":"x"}})", {.field = "a.b.c.d"}), "x|");
  EXPECT_EQ(parsed(R"({"text":"first","text":"last","id":null})", {}), "last|");  // as Python's json has it
  EXPECT_EQ(parsed(R"({"text":"t","id":18446744073709551615})", {}), "t|18446744073709551615");
  EXPECT_EQ(parsed(R"({"text":"t","id":[1, "x"]})", {}), "t|[1,\"x\"]");
  for (const char* bad : {R"({"doc":"body"})", R"({"doc":{"body":{}}})", R"({"doc":[{"body":"b"}]})", R"({"body":"b"})"})
    EXPECT_THROW(parsed(bad, {.field = "doc.body"}), DataError) << bad;
}

TEST(Documents, KeepIdFileAndLine) {
  const TestFolder folder;
  folder.write("a.jsonl.gz", gzip("{\"id\":\"x\",\"text\":\"one\"}\n\n{\"id\":9,\"text\":\"two\"}\n"));
  folder.write("b.txt", "whole\nfile");
  folder.write("c.jsonl", "{\"text\":\" \"}\n{\"text\":\"three\"}");
  DocumentReader reader({folder.path()});
  EXPECT_EQ(flat(read_all(reader)), "0:1:x:one\n0:3:9:two\n1:1::whole\nfile\n2:2::three\n");
  EXPECT_EQ(reader.where(), (folder.path() / "c.jsonl").string() + ":2");
  EXPECT_EQ(reader.input_bytes(), reader.inputs().bytes);
}

// Row 158: what stands in one buffer is not cut to the size of the first.
TEST(Documents, OfAnyLengthStayWhole) {
  const TestFolder folder;
  std::string lines;
  const std::vector<size_t> sizes = {5, 30, 3000, 1, 700'000, 12};
  for (const size_t size : sizes) lines += "{\"text\":\"" + std::string(size, 'a') + "\"}\n";
  DocumentReader reader({folder.write("f.jsonl", lines)});
  const Batch batch = read_batch(reader);
  ASSERT_EQ(batch.documents.size(), sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) EXPECT_EQ(batch.documents[i].text.size(), sizes[i]);
}

TEST(Documents, StrippedOnesMayBeEmpty) {
  const TestFolder folder;
  const fs::path file = folder.write("f.jsonl", "{\"text\":\"\\u3000a \\n\"}\n{\"text\":\"\\u2003\\u00a0\"}\n");
  DocumentReader plain({file}), strip({file}, {.strip = true});
  EXPECT_EQ(flat(read_all(plain)), "0:1::\u3000a \n\n0:2::\u2003\u00A0\n");
  EXPECT_EQ(flat(read_all(strip)), "0:1::a\n");
  EXPECT_EQ(strip.counts().empty_documents, 1);
  EXPECT_EQ(strip.counts().bytes, 1);
}

TEST(Documents, BadLinesStopOrAreCounted) {
  const TestFolder folder;
  const fs::path file = folder.write("f.jsonl", "{\"text\":\"a\"}\nnonsense\n{\"txt\":\"b\"}\n{\"text\":\"c\"}\n[]");
  DocumentReader stops({file});
  try {
    read_all(stops);
    ADD_FAILURE() << "read over a bad line";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("f.jsonl:2"), std::string::npos) << error.what();
  }
  DocumentReader skips({file}, {.skip_bad_lines = true});
  EXPECT_EQ(flat(read_all(skips)), "0:1::a\n0:4::c\n");
  EXPECT_EQ(skips.counts().bad_lines, 3);
  ASSERT_EQ(skips.counts().first_bad.size(), 3u);
  EXPECT_NE(skips.counts().first_bad[1].find("f.jsonl:3: text: found no such field"), std::string::npos) << skips.counts().first_bad[1];
  // Damaged compression is no bad line.
  const std::string packed = gzip("{\"text\":\"a\"}\n{\"text\":\"b\"}\n");
  DocumentReader cut({folder.write("g.jsonl.gz", packed.substr(0, packed.size() - 9))}, {.skip_bad_lines = true});
  EXPECT_THROW(read_all(cut), DataError);
}

// From every position of a walk over all kinds of files, the rest comes out as in the unbroken walk.
TEST(Reader, GoesOnAnywhere) {
  const TestFolder folder;
  std::string lines;
  for (int i = 0; i < 40; ++i) lines += (i % 5 ? "{\"text\":\"line " + std::to_string(i) + "\",\"id\":" + std::to_string(i) + "}" : "bad") + "\r\n";
  folder.write("a.jsonl", "\xEF\xBB\xBF" + lines);
  folder.write("b.txt.gz", gzip("text"));
  folder.write("c.jsonl.zst", zstd(lines + lines));
  folder.write("d.jsonl.gz", gzip(lines + "{\"text\":\"no newline\"}"));
  folder.write("e.html", "<p>end</p>");
  folder.write("f.txt", "  ");
  const ExtractOptions options{.skip_bad_lines = true};
  DocumentReader whole({folder.path()}, options);
  std::vector<ReaderPosition> positions = {whole.position()};
  std::vector<ExtractCounts> counts = {whole.counts()};
  std::vector<Document> documents;
  for (Document document; whole.next(document);) {
    documents.push_back(document);
    positions.push_back(whole.position());
    counts.push_back(whole.counts());
  }
  ASSERT_GT(documents.size(), 120u);
  for (size_t i = 0; i < positions.size(); ++i) {
    DocumentReader reader({folder.path()}, options);
    reader.seek(positions[i], counts[i]);
    EXPECT_EQ(flat(read_all(reader)), flat({documents.begin() + static_cast<std::ptrdiff_t>(i), documents.end()})) << i;
    EXPECT_EQ(reader.counts().bytes, whole.counts().bytes);
    EXPECT_EQ(reader.counts().files, whole.counts().files);
    EXPECT_EQ(reader.counts().bad_lines, whole.counts().bad_lines);
    EXPECT_EQ(reader.input_bytes(), whole.inputs().bytes);
  }
  DocumentReader reader({folder.path()}, options);
  EXPECT_THROW(reader.seek({.file = 0, .line = 1, .offset = 1 << 20}, {}), DataError);
  EXPECT_THROW(reader.seek({.file = 3, .line = 1, .offset = 1 << 20}, {}), DataError);
}

}  // namespace
}  // namespace dz::text
