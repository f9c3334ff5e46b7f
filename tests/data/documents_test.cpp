#include "data/documents.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "base/error.h"
#include "data/goldens.h"
#include "data/memory_store.h"

namespace dz::data {
namespace {

using nlohmann::json;
using test::MemoryStore;
using test::message_of;
using test::TemporaryDirectory;
using Ranges = std::vector<DocumentRange>;
const fs::path kTokens = DZ_GOLDEN "/data/tokens";

json to_json(const Ranges& ranges) {
  json list = json::array();
  for (const DocumentRange& range : ranges) list.push_back({range.start, range.end});
  return list;
}

TEST(DocumentLengths, AsInOlmoCoreWithAndWithoutBos) {
  int with_bos = 0;
  const json golden = test::data_golden("pieces.json");
  for (const json& row : golden["document_lengths"]) {
    const Vocabulary vocabulary{.size = 1000, .eos_id = row["eos"], .bos_id = row["bos"].is_null() ? -1 : row["bos"].get<int64_t>()};
    EXPECT_EQ(document_lengths(row["tokens"].get<std::vector<int32_t>>(), vocabulary), row["doc_lens"].get<std::vector<int64_t>>()) << row;
    with_bos += !row["bos"].is_null();
  }
  EXPECT_GE(with_bos, 15);
  for (const json& row : golden["cumulative"]) {
    EXPECT_EQ(cumulative_lengths(row["doc_lens"].get<std::vector<std::vector<int64_t>>>()), row["cu_doc_lens"].get<std::vector<int64_t>>());
  }
  EXPECT_TRUE(document_lengths({}, {.size = 10, .eos_id = 1}).empty());
  EXPECT_EQ(cumulative_lengths({}), (std::vector<int64_t>{0}));
}

Ranges documents(const TokenStore& store, const DocumentOptions& options = {}, DocumentCounts* counts = nullptr) {
  Ranges ranges;
  const DocumentCounts found = for_each_document(store, 0, options, [&](DocumentRange range) { ranges.push_back(range); });
  if (counts) *counts = found;
  return ranges;
}

TEST(Documents, LongOnesAreCutOrFragmentedAsInOlmoCore) {
  const json golden = test::data_golden("pieces.json");
  MemoryStore store({.size = 1000, .eos_id = 999}, TokenType::kUint16);
  store.add_file(kTokens / "u16-0.npy", "u16-0.npy");
  for (const LongDocuments rule : {LongDocuments::kTruncate, LongDocuments::kFragment}) {
    Ranges ranges;
    const BoundedCounts bounded = for_each_document(store, 0, {}, 8, rule, [&](DocumentRange range) { ranges.push_back(range); });
    EXPECT_EQ(to_json(ranges), golden["documents_max_8_" + std::string(name_of(rule))]);
    int64_t kept = 0;
    for (const DocumentRange& range : ranges) kept += range.length();
    EXPECT_EQ(kept + bounded.cut + bounded.counts.tail, 103);
    EXPECT_EQ(bounded.cut > 0, rule == LongDocuments::kTruncate);
  }
}

TEST(Documents, MetadataIsUsedOnlyWhenAskedFor) {
  const json golden = test::data_golden("pieces.json");
  MemoryStore store({.size = 1000, .eos_id = 40}, TokenType::kUint16);
  store.add_file(kTokens / "meta-u16.npy", (kTokens / "meta-u16.npy").string());
  EXPECT_EQ(to_json(documents(store)), golden["csv_ignored_when_local"]);
  EXPECT_EQ(to_json(documents(store, {.boundaries = Boundaries::kCsv})), golden["csv_rows_read"]);
  EXPECT_NE(golden["csv_rows_read"], golden["csv_ignored_when_local"]);
  EXPECT_EQ(boundaries_digest(store, {}), "");
  EXPECT_EQ(boundaries_digest(store, {.boundaries = Boundaries::kCsv}).size(), 64u);
}

// Row 37: 5 tokens, EOS, 4 tokens. The 4 are no document, or one; in either case they are counted.
TEST(Documents, TailAfterTheLastEosIsDroppedOrKeptButCounted) {
  MemoryStore store({.size = 100, .eos_id = 9});
  store.add("s", {1, 2, 3, 4, 5, 9, 6, 7, 8, 1});
  DocumentCounts counts;
  EXPECT_EQ(documents(store, {}, &counts), (Ranges{{0, 6}}));
  EXPECT_EQ(counts.tail, 4);
  EXPECT_EQ(counts.used, 6);
  EXPECT_EQ(documents(store, {.tail = Tail::kKeep}, &counts), (Ranges{{0, 6}, {6, 10}}));
  EXPECT_EQ(counts.tail, 0);
  EXPECT_EQ(counts.documents, 2);
}

TEST(Documents, EmptyEntriesAndEntriesOfEosOnly) {
  MemoryStore empty({.size = 100, .eos_id = 9});
  empty.add("s", {});
  EXPECT_TRUE(documents(empty, {.tail = Tail::kKeep}).empty());
  MemoryStore ends({.size = 100, .eos_id = 9});
  ends.add("s", {9, 9, 9});
  EXPECT_EQ(documents(ends), (Ranges{{0, 1}, {1, 2}, {2, 3}}));
  MemoryStore none({.size = 100});
  none.add("s", {1, 2});
  EXPECT_THROW(documents(none), ConfigError);
}

TEST(Documents, AreTheSameWhereverTheBlocksOfTheScanEnd) {
  MemoryStore store({.size = 100, .eos_id = 9});
  std::vector<int32_t> tokens((1 << 19) + 3, 1);
  for (const size_t at : {size_t{0}, (size_t{1} << 18) - 1, size_t{1} << 18, (size_t{1} << 19) + 1}) tokens[at] = 9;
  store.add("s", std::move(tokens));
  EXPECT_EQ(documents(store), (Ranges{{0, 1}, {1, 1 << 18}, {1 << 18, (1 << 18) + 1}, {(1 << 18) + 1, (1 << 19) + 2}}));
}

std::string gzip(const std::string& text) {
  const TemporaryDirectory root;
  const std::string path = (root / "x").string();
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  return test::slurp(path);
}

Ranges read_rows(const std::string& bytes, int64_t tokens = 100) {
  const TemporaryDirectory root;
  test::spill(root / "x.csv.gz", bytes);
  Ranges ranges;
  read_document_metadata(root / "x.csv.gz", tokens, [&](DocumentRange range) { ranges.push_back(range); });
  return ranges;
}

std::string complaint(const std::string& bytes, int64_t tokens = 100) {
  const std::string message = message_of<DataError>([&] { read_rows(bytes, tokens); });
  const size_t name = message.find("x.csv.gz");
  return name == std::string::npos ? message : message.substr(name);
}

TEST(DocumentMetadata, ReadsBothWritersForms) {
  EXPECT_EQ(read_rows(gzip("0,7\n7,9\n")), (Ranges{{0, 7}, {7, 9}}));
  EXPECT_EQ(read_rows(gzip("0,7,id,\"a,b\",3\r\n7,9,id,src,4\r\n")), (Ranges{{0, 7}, {7, 9}}));
  EXPECT_EQ(read_rows(gzip("0,7\n10,100")), (Ranges{{0, 7}, {10, 100}})) << "no final newline";
  EXPECT_TRUE(read_rows(gzip("")).empty());
  EXPECT_EQ(read_rows(gzip("0,1\n") + gzip("1,2\n")), (Ranges{{0, 1}, {1, 2}})) << "two gzip members";
  EXPECT_EQ(read_rows(gzip("0,9000000000," + std::string(100000, 'x') + "\n9000000000,9000000001\n"), int64_t{1} << 40).size(), 2u);
}

TEST(DocumentMetadata, EveryDamageIsNamedWithItsLine) {
  EXPECT_EQ(complaint(gzip("0,7\n7,101\n")),
            "x.csv.gz:2: found end 101, expected at most 100, the tokens of the file; the metadata belongs to another token file or is damaged");
  EXPECT_EQ(complaint(gzip("0,100\n")), "");
  EXPECT_NE(complaint(gzip("0,7\n6,9\n")).find("x.csv.gz:2: found start 6, expected at least 7"), std::string::npos);
  EXPECT_NE(complaint(gzip("5,4\n")).find("x.csv.gz:1: found end 4, expected at least the start 5"), std::string::npos);
  for (const std::string row : {"start,end", "1", "1,", ",1", "-1,4", "1 ,4", "0x1,4", "1,4.0", "99999999999999999999,1", "", "1;2"}) {
    EXPECT_NE(complaint(gzip("0,1\n" + row + "\n")).find("x.csv.gz:2: found \""), std::string::npos) << row;
  }
  EXPECT_NE(complaint(gzip("0,1," + std::string(3 << 20, 'x'))).find("x.csv.gz:1: found a row of more than 1048576 bytes"), std::string::npos);
  EXPECT_NE(complaint("0,7\n").find("x.csv.gz: found no gzip header"), std::string::npos);
  EXPECT_NE(complaint("").find("x.csv.gz: found no gzip header"), std::string::npos);
  const std::string whole = gzip("0,7\n7,9\n9,20\n");
  for (size_t size = 2; size < whole.size(); ++size) EXPECT_NE(complaint(whole.substr(0, size)), "") << size;
  EXPECT_EQ(complaint(whole.substr(0, whole.size() - 1)), "x.csv.gz: cut off: the file ends before its gzip data");
  EXPECT_THROW(read_document_metadata("/nowhere/x.csv.gz", 1, [](DocumentRange) {}), InputError);
  EXPECT_EQ(document_metadata_path("/a/b.npy"), "/a/b.csv.gz");
  EXPECT_THROW(document_metadata_path("/a.npy/b.bin"), DataError);
}

// Row 194: a row without a token is a document of nothing; it is left out, and counted.
TEST(DocumentMetadata, EmptyDocumentsAndGapsAreCounted) {
  const TemporaryDirectory root;
  MemoryStore store({.size = 100, .eos_id = 9});
  store.add((root / "x.npy").string(), std::vector<int32_t>(10, 1));
  test::spill(root / "x.csv.gz", gzip("0,3\n3,3\n5,9\n"));
  DocumentCounts counts;
  EXPECT_EQ(documents(store, {.boundaries = Boundaries::kCsv}, &counts), (Ranges{{0, 3}, {5, 9}}));
  EXPECT_EQ(counts.empty, 1);
  EXPECT_EQ(counts.outside, 3);
  EXPECT_EQ(counts.documents, 2);
  const std::string before = boundaries_digest(store, {.boundaries = Boundaries::kCsv});
  test::spill(root / "x.csv.gz", gzip("0,3\n3,3\n5,8\n"));
  EXPECT_NE(boundaries_digest(store, {.boundaries = Boundaries::kCsv}), before);
}

}  // namespace
}  // namespace dz::data
