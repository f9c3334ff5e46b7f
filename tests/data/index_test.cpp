#include "data/index.h"

#include <gtest/gtest.h>

#include <chrono>

#include "base/error.h"
#include "base/hash.h"
#include "data/bare_store.h"
#include "data/goldens.h"
#include "data/temporary.h"

namespace dz::data {
namespace {

using nlohmann::json;
using test::message_of;

const std::string kRoot = DZ_GOLDEN "/data/";

// The index of the files that a row of the reference names, with its paths.
TokenIndex index_of(const json& golden) {
  BareSettings settings{.paths = {}, .labels = {}, .masks = {}, .vocabulary = {.size = 100278, .eos_id = 100257}, .cache_directory = {}};
  settings.type = parse_token_type(golden["dtype"].get<std::string>(), "golden");
  if (settings.type == TokenType::kUint16) settings.vocabulary = {.size = 1000, .eos_id = 999};
  for (const json& file : golden["files"]) {
    settings.paths.push_back(kRoot + file["path"].get<std::string>());
    settings.labels.push_back(file["label"]);
  }
  TokenIndex index = make_index(BareStore(settings), golden["sequence_length"], golden["tokenizer"], {});
  for (IndexedFile& file : index.files) file.path.erase(0, kRoot.size());
  return index;
}

TEST(Index, IsMaxTextsByteForByteWithItsLookUps) {
  const json golden = test::data_golden("maxtext.json");
  int rows = 0;
  for (const json& row : golden["index"]) {
    const std::string text = row["json_text"];
    const TokenIndex index = index_of(json::parse(text));
    EXPECT_EQ(maxtext_index_json(index), text) << row["name"];
    EXPECT_EQ(sha256_hex(maxtext_index_json(index)), row["json_sha256"]);
    const TokenIndex read = parse_index(text, "golden");
    EXPECT_EQ(maxtext_index_json(read), text);
    EXPECT_EQ(read.total_instances(), index.total_instances());
    EXPECT_NO_THROW(check_index_files(read, kRoot));
    int64_t checked = 0;
    for (const json& look : row["lookup_id_file_token"]) {
      const IndexPlace place = find_instance(index, look[0]);
      EXPECT_EQ(place.file, look[1]) << row["name"] << " " << look;
      EXPECT_EQ(place.token, look[2]) << row["name"] << " " << look;
      ++checked;
    }
    EXPECT_GT(checked, 0);
    ++rows;
  }
  EXPECT_EQ(rows, 4);
}

TEST(Index, MaxTextsTextIsAscii) {
  TokenIndex index{.sequence_length = 8, .type = TokenType::kUint32, .tokenizer = "a\"\x7f\xc3\xa9\xf0\x9f\x98\x80", .files = {}};
  EXPECT_NE(maxtext_index_json(index).find(R"("a\"\u007f\u00e9\ud83d\ude00")"), std::string::npos) << maxtext_index_json(index);
  EXPECT_NE(maxtext_index_json(index).find("\"files\": []"), std::string::npos);
  index.tokenizer = "\xff";
  EXPECT_THROW(maxtext_index_json(index), DataError);
}

class Ours : public ::testing::Test {
 protected:
  Ours() {
    for (const char* name : {"u16-0.npy", "u16-1.npy", "u16-2.npy"}) {
      std::filesystem::copy_file(kRoot + "tokens/" + name, directory / name);
      std::filesystem::permissions(directory / name, std::filesystem::perms::owner_all);
      paths.push_back((directory / name).string());
    }
  }
  TokenIndex make(bool hashed, int64_t length = 8) {
    const BareStore store(
        {.paths = paths, .labels = {}, .masks = {}, .type = TokenType::kUint16, .vocabulary = {.size = 1000, .eos_id = 999}, .cache_directory = {}});
    std::vector<std::optional<std::string>> hashes;
    if (hashed) store.digest();
    for (int64_t i = 0; i < store.size(); ++i) hashes.push_back(store.known_sha256(i));
    return make_index(store, length, "tok", hashes);
  }
  test::TemporaryDirectory directory;
  std::vector<std::string> paths;
};

TEST_F(Ours, IsReadBackAsItWasWritten) {
  for (const bool hashed : {false, true}) {
    const TokenIndex index = make(hashed);
    const TokenIndex read = parse_index(index_json(index), "index");
    EXPECT_EQ(index_json(read), index_json(index));
    EXPECT_EQ(read.total_instances(), 17);
    EXPECT_EQ(read.total_tokens(), 148);
    EXPECT_EQ(read.vocabulary.eos_id, 999);
    EXPECT_EQ(read.files[1].sha256.has_value(), hashed);
    EXPECT_NO_THROW(check_index_files(read, ""));
  }
}

TEST_F(Ours, FingerprintCoversContentsWhenHashed) {
  const std::string hashed = index_fingerprint(make(true)), unhashed = index_fingerprint(make(false));
  EXPECT_NE(hashed, unhashed);
  EXPECT_NE(index_fingerprint(make(true, 9)), hashed);
  std::filesystem::rename(paths[0], directory / "renamed");
  const std::string old = paths[0];
  paths[0] = (directory / "renamed").string();
  EXPECT_EQ(index_fingerprint(make(true)), hashed);  // the same bytes
  std::filesystem::rename(directory / "renamed", old);
  paths[0] = old;
  std::string bytes = test::slurp(old);
  bytes[10] ^= 1;
  test::spill(old, bytes);
  EXPECT_EQ(index_fingerprint(make(false)), unhashed);  // it cannot know
  EXPECT_NE(index_fingerprint(make(true)), hashed);
  std::swap(paths[0], paths[1]);
  EXPECT_NE(index_fingerprint(make(false)), unhashed);
}

TEST_F(Ours, EveryNumberOfAnIndexIsChecked) {
  const json ours = json::parse(index_json(make(true))), maxtext = json::parse(maxtext_index_json(make(true)));
  ASSERT_NO_THROW(parse_index(ours.dump(), "x"));
  ASSERT_NO_THROW(parse_index(maxtext.dump(), "x"));
  for (const json& good : {ours, maxtext}) {
    const json flat = good.flatten();
    for (const auto& [pointer, value] : flat.items()) {
      // Labels take no part in either fingerprint, and paths of hashed files none in ours.
      if (pointer.ends_with("/label") ||
          (good.contains("format") && (pointer.ends_with("/path") || pointer.ends_with("/bytes") || pointer == "/tokenizer")))
        continue;
      json bad = good;
      json& item = bad[json::json_pointer(pointer)];
      if (item.is_string()) {
        item = item.get<std::string>() + "x";
      } else {
        item = item.get<int64_t>() + 1;
      }
      EXPECT_THROW(parse_index(bad.dump(), "x"), DataError) << pointer;
      item = json::array();
      EXPECT_THROW(parse_index(bad.dump(), "x"), DataError) << pointer;
      item = -2;
      EXPECT_THROW(parse_index(bad.dump(), "x"), DataError) << pointer;
    }
  }
  for (const char* text : {"", "[]", "{}", "{\"format\": 1}", "nonsense"}) EXPECT_THROW(parse_index(text, "x"), DataError) << text;
  json other = maxtext;
  other["dtype"] = ">u4";
  EXPECT_NE(message_of<DataError>([&] { parse_index(other.dump(), "x"); }).find("\"uint16\" or \"uint32\""), std::string::npos);
}

TEST_F(Ours, FilesThatChangedAreNamed) {
  const TokenIndex index = make(false), maxtext = parse_index(maxtext_index_json(index), "x");
  std::filesystem::resize_file(paths[1], 78);
  EXPECT_NE(message_of<DataError>([&] { check_index_files(index, ""); }).find(paths[1] + ": found 78 bytes, expected 80"), std::string::npos);
  EXPECT_NE(message_of<DataError>([&] { check_index_files(maxtext, ""); }).find(paths[1] + ": found 39 tokens, expected 40"), std::string::npos);
  std::filesystem::remove(paths[1]);
  EXPECT_THROW(check_index_files(index, ""), InputError);
}

// 1,000 files of 2^33 tokens are 2^33 * 1,000 tokens: sums and offsets beyond 2^32, in seconds, without reading.
TEST(Index, AThousandSparseFilesAreIndexedInSeconds) {
  const test::TemporaryDirectory directory;
  constexpr int64_t kFiles = 1000, kTokens = int64_t{1} << 33, kLength = 8192;
  BareSettings settings{.paths = {}, .labels = {}, .masks = {}, .vocabulary = {.size = 100278, .eos_id = 100257}, .cache_directory = {}};
  for (int64_t i = 0; i < kFiles; ++i) {
    settings.paths.push_back((directory / ("part-" + std::to_string(i))).string());
    File file = File::create(settings.paths.back());
    try {
      file.truncate(kTokens * 4);
    } catch (const IoError&) {
      GTEST_SKIP() << "the file system has no files of 32 GiB";
    }
  }
  const auto start = std::chrono::steady_clock::now();
  const TokenIndex index = parse_index(index_json(make_index(BareStore(settings), kLength, "dolma2", {})), "x");
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_LT(seconds, 10);
  EXPECT_EQ(index.total_tokens(), kFiles * kTokens);
  EXPECT_EQ(index.total_instances(), kFiles * kTokens / kLength);
  for (size_t i = 1; i < index.files.size(); ++i) ASSERT_GT(index.files[i].offset, index.files[i - 1].offset);
  const IndexPlace last = find_instance(index, index.total_instances() - 1);
  EXPECT_EQ(last.file, kFiles - 1);
  EXPECT_EQ(last.token, kTokens - kLength);
}

// Offsets in 64 bits, also where the tokens have 16.
TEST(Index, ShortTokensDoNotMakeShortOffsets) {
  const test::TemporaryDirectory directory;
  test::spill(directory / "x", std::string(140000, '\0'));
  const BareStore store({.paths = {(directory / "x").string()},
                         .labels = {},
                         .masks = {},
                         .type = TokenType::kUint16,
                         .vocabulary = {.size = 1000},
                         .cache_directory = {}});
  const TokenIndex index = make_index(store, 8, "", {});
  EXPECT_EQ(index.total_instances(), 8750);
  EXPECT_EQ(find_instance(index, 8749).token, 69992);
}

}  // namespace
}  // namespace dz::data
