#include "data/bare_store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/thread_pool.h"
#include "data/dataset.h"
#include "data/goldens.h"
#include "data/temporary.h"

namespace dz::data {
namespace {

using nlohmann::json;
using test::message_of;
using test::spill;

const std::string kTokens = DZ_GOLDEN "/data/tokens/";
constexpr Vocabulary kSmall{.size = 1000, .eos_id = 999, .pad_id = 998};
constexpr Vocabulary kDolma2{.size = 100278, .eos_id = 100257, .pad_id = 100277};

template <class Id>
void write_ids(const std::filesystem::path& path, const std::vector<uint32_t>& ids) {
  std::string bytes(ids.size() * sizeof(Id), '\0');
  for (size_t i = 0; i < ids.size(); ++i) {
    const Id id = static_cast<Id>(ids[i]);
    std::memcpy(bytes.data() + i * sizeof(Id), &id, sizeof(Id));
  }
  spill(path, bytes);
}

std::vector<int32_t> all(const TokenStore& store, int64_t entry) {
  std::vector<int32_t> out(static_cast<size_t>(store.entry(entry).tokens));
  store.read(entry, 0, out);
  return out;
}

// Files of 100 tokens 1 ... 100 plus 100 * number, so that contents say which file they are.
class Files {
 public:
  explicit Files(int count) {
    for (int i = 0; i < count; ++i) {
      std::vector<uint32_t> ids;
      for (uint32_t j = 0; j < 100; ++j) ids.push_back(1 + j + 100 * static_cast<uint32_t>(i));
      paths.push_back((directory / ("part-" + std::to_string(i) + ".npy")).string());
      write_ids<uint16_t>(paths.back(), ids);
      settle(paths.back());
    }
  }
  // An older time of change, so that hashes of it are kept.
  static void settle(const std::string& path) {
    std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) - std::chrono::seconds(10));
  }
  BareSettings settings() const {
    return {.paths = paths, .labels = {}, .masks = {}, .type = TokenType::kUint16, .vocabulary = kSmall, .cache_directory = {}};
  }
  test::TemporaryDirectory directory;
  std::vector<std::string> paths;
};

void flip(const std::string& path, int64_t at, char value) {
  const auto time = std::filesystem::last_write_time(path);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(at);
  file.put(value);
  file.close();
  std::filesystem::last_write_time(path, time);
}

TEST(BareStore, ReadsTheTokensOfOlmoCoreFiles) {
  const BareStore store({.paths = {kTokens + "u16-0.npy", kTokens + "u16-2.npy"},
                         .labels = {"a", "b"},
                         .masks = {},
                         .type = TokenType::kUint16,
                         .vocabulary = kSmall,
                         .cache_directory = {}});
  ASSERT_EQ(store.size(), 2);
  EXPECT_EQ(store.entry(0).tokens, 103);
  EXPECT_EQ(store.entry(1).label, "b");
  const std::string bytes = test::slurp(kTokens + "u16-0.npy");
  const std::vector<int32_t> ids = all(store, 0);
  for (size_t i = 0; i < ids.size(); ++i) {
    uint16_t id;
    std::memcpy(&id, bytes.data() + 2 * i, 2);
    ASSERT_EQ(ids[i], id);
  }
  EXPECT_TRUE(store.notes().empty());
}

TEST(BareStore, ATrueNpyGivesTheSameTokensAsItsDataAlone) {
  const test::TemporaryDirectory directory;
  const std::string whole = test::slurp(kTokens + "real-header-u32.npy");
  spill(directory / "bare", whole.substr(128));
  const BareStore store({.paths = {kTokens + "real-header-u32.npy", (directory / "bare").string()},
                         .labels = {},
                         .masks = {},
                         .type = TokenType::kUint32,
                         .vocabulary = kDolma2,
                         .cache_directory = {}});
  EXPECT_EQ(store.entry(0).tokens, 200);
  EXPECT_EQ(all(store, 0), all(store, 1));
  ThreadPool pool(2);
  EXPECT_NO_THROW(store.verify(pool));
}

TEST(BareStore, TheWrongWidthIsRefused) {
  const test::TemporaryDirectory directory;
  const std::string path = (directory / "ids").string();
  write_ids<uint32_t>(path, {1, 65535, 65536, 100257, 100277});
  const auto open = [&](TokenType type, const Vocabulary& vocabulary) {
    return BareStore({.paths = {path}, .labels = {}, .masks = {}, .type = type, .vocabulary = vocabulary, .cache_directory = {}});
  };
  EXPECT_EQ(all(open(TokenType::kUint32, kDolma2), 0), (std::vector<int32_t>{1, 65535, 65536, 100257, 100277}));
  EXPECT_NE(message_of<ConfigError>([&] { open(TokenType::kUint16, kDolma2); }).find("uint32 for a vocabulary of 100278"), std::string::npos);
  EXPECT_NE(message_of<DataError>([&] { open(TokenType::kUint16, {.size = 65536}); }).find("uint32 tokens"), std::string::npos);
  EXPECT_NE(
      message_of<DataError>([&] {
        BareStore(
            {.paths = {kTokens + "u16-0.npy"}, .labels = {}, .masks = {}, .type = TokenType::kUint32, .vocabulary = kDolma2, .cache_directory = {}});
      }).find("uint16 tokens"),
      std::string::npos);
}

TEST(BareStore, IdsOutsideTheVocabularyAreNamedByFileAndByte) {
  for (const uint32_t bad : {100278U, 100352U, 4294967295U}) {
    const test::TemporaryDirectory directory;
    const std::string path = (directory / "ids").string();
    write_ids<uint32_t>(path, {1, 2, 3, bad, 5});
    const BareStore store({.paths = {path}, .labels = {}, .masks = {}, .type = TokenType::kUint32, .vocabulary = kDolma2, .cache_directory = {}});
    ThreadPool pool(1);
    const std::string expected = path + " at byte 12: found token id " + std::to_string(bad);
    EXPECT_NE(message_of<DataError>([&] { all(store, 0); }).find(expected), std::string::npos);
    EXPECT_NE(message_of<DataError>([&] { store.verify(pool); }).find(expected), std::string::npos);
    std::vector<int32_t> out(3);
    EXPECT_NO_THROW(store.read(0, 0, out));
  }
}

TEST(BareStore, LeftOverBytesAndEmptyFilesAreNotedAndRefusedWhenStrict) {
  const test::TemporaryDirectory directory;
  spill(directory / "empty", "");
  BareSettings settings{.paths = {kTokens + "odd-size-u16.npy", (directory / "empty").string()},
                        .labels = {},
                        .masks = {},
                        .type = TokenType::kUint16,
                        .vocabulary = kSmall,
                        .cache_directory = {}};
  const BareStore store(settings);
  EXPECT_EQ(store.entry(0).tokens, 20);
  EXPECT_EQ(store.entry(0).bytes, 41);
  ASSERT_EQ(store.notes().size(), 2U);
  EXPECT_NE(store.notes()[0].find("odd-size-u16.npy: the last 1 of 41 bytes"), std::string::npos);
  EXPECT_NE(store.notes()[1].find("empty: no tokens"), std::string::npos);
  ThreadPool pool(1);
  EXPECT_NO_THROW(store.verify(pool));
  settings.strict = true;
  EXPECT_NE(message_of<DataError>([&] { BareStore{settings}; }).find("41 bytes"), std::string::npos);
}

TEST(BareStore, LabelMasksAreReadAndChecked) {
  const test::TemporaryDirectory directory;
  BareSettings settings{.paths = {kTokens + "u16-1.npy"},
                        .labels = {},
                        .masks = {kTokens + "u16-1-mask.npy"},
                        .type = TokenType::kUint16,
                        .vocabulary = kSmall,
                        .cache_directory = {}};
  const BareStore store(settings);
  EXPECT_TRUE(store.has_label_masks());
  std::vector<uint8_t> mask(40);
  store.read_label_mask(0, 0, mask);
  EXPECT_EQ(std::string(mask.begin(), mask.end()), test::slurp(kTokens + "u16-1-mask.npy"));
  std::string wrong = test::slurp(kTokens + "u16-1-mask.npy");
  wrong[7] = 2;
  spill(directory / "mask", wrong);
  settings.masks = {(directory / "mask").string()};
  const BareStore damaged(settings);
  ThreadPool pool(1);
  EXPECT_NE(message_of<DataError>([&] { damaged.read_label_mask(0, 0, mask); }).find("mask at byte 7: found byte 2"), std::string::npos);
  EXPECT_NE(message_of<DataError>([&] { damaged.verify(pool); }).find("mask at byte 7"), std::string::npos);
  spill(directory / "mask", wrong.substr(1));
  EXPECT_NE(message_of<DataError>([&] { BareStore{settings}; }).find("39 bytes"), std::string::npos);
}

TEST(BareStore, AFileThatIsCutOrGoneWhileInUseIsNamed) {
  Files files(2);
  const BareStore store(files.settings());
  std::vector<int32_t> out(10);
  store.read(0, 90, out);  // opens the first
  std::filesystem::resize_file(files.paths[0], 150);
  std::filesystem::resize_file(files.paths[1], 150);
  EXPECT_NE(message_of<DataError>([&] { store.read(0, 70, out); }).find(files.paths[0] + " at byte 140"), std::string::npos);
  const std::string message = message_of<DataError>([&] { store.read(1, 90, out); });
  EXPECT_NE(message.find(files.paths[1] + " at byte 180"), std::string::npos) << message;
  EXPECT_NE(message.find("truncated"), std::string::npos);
  std::filesystem::remove(files.paths[1]);
  EXPECT_NE(message_of<DataError>([&] { store.read(1, 0, out); }).find("No such file"), std::string::npos);
}

TEST(BareStore, MoreFilesThanDescriptorsAreRead) {
  Files files(4);
  BareSettings settings = files.settings();
  settings.paths.clear();
  for (int i = 0; i < 1200; ++i) settings.paths.push_back(files.paths[static_cast<size_t>(i % 4)]);
  const BareStore store(settings);
  ThreadPool pool(4);
  pool.parallel_for(2400, [&](int64_t i) {
    std::vector<int32_t> out(5);
    store.read(i % 1200, 10, out);
    EXPECT_EQ(out[0], 11 + 100 * (i % 4));
  });
  int open = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++open;
  EXPECT_LT(open, 300);
}

TEST(BareStore, DigestCoversContentsAndOrderButNoPath) {
  Files files(2), again(2);
  const std::string digest = BareStore(files.settings()).digest();
  EXPECT_EQ(BareStore(again.settings()).digest(), digest);
  BareSettings other = files.settings();
  std::swap(other.paths[0], other.paths[1]);
  EXPECT_NE(BareStore(other).digest(), digest);
  other = files.settings();
  other.vocabulary.eos_id = 998;
  EXPECT_NE(BareStore(other).digest(), digest);
  other = files.settings();
  other.vocabulary.bos_id = 997;
  EXPECT_NE(BareStore(other).digest(), digest);
  flip(files.paths[1], 6, 9);
  EXPECT_NE(BareStore(files.settings()).digest(), digest);
}

TEST(HashCache, SparesReadingAndVerifyStillReadsEverything) {
  Files files(2);
  BareSettings settings = files.settings();
  settings.cache_directory = files.directory / "cache";
  const std::string digest = BareStore(settings).digest();
  flip(files.paths[1], 6, 9);  // same size and time of change: only reading can tell
  const BareStore store(settings);
  EXPECT_TRUE(store.known_sha256(1).has_value());
  EXPECT_EQ(store.digest(), digest);
  ThreadPool pool(2);
  EXPECT_NE(message_of<DataError>([&] { store.verify(pool); }).find(files.paths[1] + " at byte 0"), std::string::npos);
  std::filesystem::last_write_time(files.paths[1], std::filesystem::last_write_time(files.paths[1]) - std::chrono::seconds(1));
  EXPECT_NE(BareStore(settings).digest(), digest);  // another time of change: read again
}

TEST(HashCache, FreshFilesAreNotKeptAndADamagedCacheIsIgnored) {
  Files files(2);
  BareSettings settings = files.settings();
  settings.cache_directory = files.directory / "cache";
  std::filesystem::last_write_time(files.paths[0], std::filesystem::file_time_type::clock::now());
  const std::string digest = BareStore(settings).digest();
  EXPECT_FALSE(BareStore(settings).known_sha256(0).has_value());
  EXPECT_TRUE(BareStore(settings).known_sha256(1).has_value());
  const std::string path = (files.directory / "cache" / "file_hashes.json").string(), good = test::slurp(path);
  std::string wrong = good;
  wrong[good.find("\"chunks\":[\"") + 11] ^= 1;
  for (const std::string& text : {wrong, good.substr(0, good.size() / 2), std::string("[]"), std::string()}) {
    spill(path, text);
    const BareStore store(settings);
    ASSERT_EQ(store.notes().size(), 1U) << text;
    EXPECT_FALSE(store.known_sha256(1).has_value());
    EXPECT_EQ(store.digest(), digest);
  }
  EXPECT_TRUE(BareStore(settings).notes().empty());  // repaired
}

TEST(FileDifferences, NamesWhatChanged) {
  Files files(4);
  const std::string run = BareStore(files.settings()).manifest_json();
  const auto now = [&](const BareSettings& settings) { return file_differences(run, BareStore(settings).manifest_json()); };
  EXPECT_TRUE(now(files.settings()).empty());

  BareSettings settings = files.settings();
  std::filesystem::copy_file(settings.paths[2], settings.paths[2] + ".renamed");
  settings.paths[2] += ".renamed";
  EXPECT_TRUE(now(settings).empty());

  settings = files.settings();
  std::swap(settings.paths[1], settings.paths[2]);
  ASSERT_EQ(now(settings).size(), 1U);
  EXPECT_NE(now(settings)[0].find("reordered"), std::string::npos);

  settings = files.settings();
  settings.paths.erase(settings.paths.begin());
  EXPECT_EQ(now(settings), (std::vector<std::string>{files.paths[0] + ": missing"}));

  settings = files.settings();
  settings.vocabulary.eos_id = 5;
  EXPECT_EQ(now(settings), (std::vector<std::string>{"eos_id: 999 in the run, 5 now"}));

  flip(files.paths[1], 6, 9);
  ASSERT_EQ(now(files.settings()).size(), 1U);
  EXPECT_EQ(now(files.settings())[0].find(files.paths[1] + ": changed content"), 0U);
  flip(files.paths[1], 6, 104);  // as it was
  EXPECT_TRUE(now(files.settings()).empty());

  std::filesystem::rename(files.paths[1], files.paths[1] + ".x");
  std::filesystem::rename(files.paths[3], files.paths[1]);
  std::filesystem::rename(files.paths[1] + ".x", files.paths[3]);
  EXPECT_EQ(now(files.settings()), (std::vector<std::string>{files.paths[1] + " and " + files.paths[3] + ": their contents are swapped"}));

  std::filesystem::resize_file(files.paths[0], 100);
  EXPECT_EQ(now(files.settings())[0], files.paths[0] + ": shortened from 200 to 100 bytes");
  EXPECT_THROW(file_differences("{}", run), DataError);
}

TEST(BareStore, SparseFilesBeyond32BitsAreReadAtTheirPlace) {
  const test::TemporaryDirectory directory;
  const std::string path = (directory / "sparse").string();
  constexpr int64_t kCount = (int64_t{1} << 31) + 64;
  const uint32_t marker = 77;
  {
    File file = File::create(path);
    file.truncate(kCount * 4);
  }
  std::fstream out(path, std::ios::in | std::ios::out | std::ios::binary);
  out.seekp((kCount - 1) * 4);
  out.write(reinterpret_cast<const char*>(&marker), 4);
  out.close();
  const BareStore store({.paths = {path}, .labels = {}, .masks = {}, .type = TokenType::kUint32, .vocabulary = kDolma2, .cache_directory = {}});
  EXPECT_EQ(store.entry(0).tokens, kCount);
  std::vector<int32_t> two(2);
  store.read(0, kCount - 2, two);
  EXPECT_EQ(two, (std::vector<int32_t>{0, 77}));
}

TEST(BareStore, SettingsThatDoNotFitAreRefused) {
  BareSettings settings{
      .paths = {kTokens + "u16-0.npy"}, .labels = {}, .masks = {}, .type = TokenType::kUint16, .vocabulary = kSmall, .cache_directory = {}};
  settings.labels = {"a", "b"};
  EXPECT_THROW(BareStore{settings}, ConfigError);
  settings.labels = {};
  settings.vocabulary.eos_id = 1000;
  EXPECT_THROW(BareStore{settings}, ConfigError);
  settings.vocabulary = {.size = 0};
  EXPECT_THROW(BareStore{settings}, ConfigError);
  settings.vocabulary = kSmall;
  settings.paths = {};
  EXPECT_THROW(BareStore{settings}, ConfigError);
  settings.paths = {"/nonexistent/x"};
  EXPECT_THROW(BareStore{settings}, InputError);
}

}  // namespace
}  // namespace dz::data
