#include "data/token_shards.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>

#include "base/error.h"
#include "base/thread_pool.h"
#include "data/temporary.h"
#include "data/token_writer.h"
#include "numerics/philox.h"

namespace dz::data {
namespace {

using test::message_of;
using test::slurp;
using test::spill;
using test::TemporaryDirectory;

using Ids = std::vector<int32_t>;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TokenShardWriter::Settings settings(int64_t vocab, int64_t eos, int64_t shard_tokens = 1 << 20) {
  return {.vocab_size = vocab, .eos_id = eos, .tokenizer_sha256 = std::string(64, 'a'), .shard_tokens = shard_tokens};
}

Ids read_all(const TokenShards& shards, int64_t source, Split split) {
  Ids ids(static_cast<size_t>(shards.manifest().sources[static_cast<size_t>(source)].stream(split).tokens));
  shards.read(source, split, 0, ids);
  return ids;
}

// A directory with one source "web" of the tokens 1 2 3 EOS(0) and held-out 4 EOS.
void write_small(const fs::path& directory, int64_t vocab = 10, Ids train = {1, 2, 3}) {
  TokenShardWriter writer(directory, settings(vocab, 0));
  writer.append("web", Split::kTrain, train);
  writer.append("web", Split::kHeldOut, Ids{4});
  writer.finish();
}

// What opening, verifying and reading everything complains about.
std::string complaint(const fs::path& directory) {
  return message_of<Error>([&] {
    const TokenShards shards(directory);
    ThreadPool pool(2);
    shards.verify(pool);
  });
}

TEST(TokenShards, GivesBackWhatWasWritten) {
  const TemporaryDirectory root;
  TokenShardWriter writer(root / "t", settings(300, 299));
  writer.append("b", Split::kTrain, Ids{1, 2, 3});
  writer.append("a", Split::kTrain, Ids{7});
  writer.append("b", Split::kHeldOut, Ids{9, 8});
  writer.append("b", Split::kTrain, Ids{});
  writer.append("b", Split::kTrain, Ids{4, 299});  // ends with EOS already
  const TokenManifest written = writer.finish();
  const TokenShards shards(root / "t");
  EXPECT_EQ(shards.manifest(), written);
  ASSERT_EQ(written.sources.size(), 2u);
  EXPECT_EQ(written.sources[0].name, "b");
  EXPECT_EQ(read_all(shards, 0, Split::kTrain), (Ids{1, 2, 3, 299, 4, 299}));
  EXPECT_EQ(read_all(shards, 0, Split::kHeldOut), (Ids{9, 8, 299}));
  EXPECT_EQ(read_all(shards, 1, Split::kTrain), (Ids{7, 299}));
  EXPECT_EQ(written.sources[0].stream(Split::kTrain).documents, 2);
  EXPECT_EQ(written.tokens(Split::kTrain), 8);
  EXPECT_TRUE(fs::exists(root / "t/b.train-00000.npy"));
  EXPECT_FALSE(fs::exists(root / "t/.partial"));
  EXPECT_EQ(complaint(root / "t"), "");
}

// D2, row 38: 32-bit ids survive, and the same bytes are refused as 16-bit ones.
TEST(TokenShards, WidthFollowsTheVocabulary) {
  const TemporaryDirectory root;
  const Ids ids = {1, 65535, 65536, 100257, 100277};
  TokenShardWriter writer(root / "t", settings(100278, 100257));
  writer.append("s", Split::kTrain, ids);
  EXPECT_EQ(writer.finish().type, TokenType::kUint32);
  Ids back(5);
  TokenShards(root / "t").read(0, Split::kTrain, 0, back);
  EXPECT_EQ(back, ids);
  EXPECT_EQ(token_type_for(65536), TokenType::kUint16);
  EXPECT_EQ(token_type_for(65537), TokenType::kUint32);

  std::string manifest = slurp(root / "t/manifest.json");
  manifest.replace(manifest.find("uint32"), 6, "uint16");
  spill(root / "t/manifest.json", manifest);
  EXPECT_TRUE(contains(complaint(root / "t"), "expected uint32 for a vocabulary of 100278")) << complaint(root / "t");
}

// Row 39.
TEST(TokenShards, UnknownWidthsAreRefusedWithTheAllowedOnes) {
  for (const std::string name : {"uint23", "", "int32"}) {
    const std::string message = message_of<DataError>([&] { parse_token_type(name, "m.json: dtype"); });
    EXPECT_TRUE(contains(message, "\"uint16\" or \"uint32\"")) << message;
  }
  EXPECT_EQ(parse_token_type("uint32", ""), TokenType::kUint32);
}

// Row 48: offsets past 65,536 in a uint16 stream, shards smaller than a read.
TEST(TokenShards, ReadsAcrossShardsAtAnyOffset) {
  const TemporaryDirectory root;
  Ids ids(70000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i * 7 % 999 + 1);
  TokenShardWriter writer(root / "t", settings(1000, 0, 999));  // row 36: a document longer than a shard goes on in the next
  writer.append("s", Split::kTrain, ids);
  EXPECT_EQ(writer.finish().sources[0].stream(Split::kTrain).files.size(), 71u);
  const TokenShards shards(root / "t");
  for (const int64_t first : {0, 998, 999, 1000, 65530, 67001}) {
    Ids out(2999);
    shards.read(0, Split::kTrain, first, out);
    EXPECT_TRUE(std::equal(out.begin(), out.end(), ids.begin() + first)) << first;
  }
  Ids last(8);
  shards.read(0, Split::kTrain, 69992, last);
  EXPECT_EQ(last, Ids(ids.end() - 8, ids.end()));
}

// Row 42: sums of tokens beyond 32 bits, with no disk behind them.
TEST(TokenManifest, CountsBeyond32Bits) {
  TokenManifest manifest{
      .vocab_size = 70000, .eos_id = 0, .type = TokenType::kUint32, .tokenizer_sha256 = "", .sources = {{.name = "s", .splits = {}}}};
  Stream& stream = manifest.sources[0].stream(Split::kTrain);
  for (int i = 0; i < 8; ++i) stream.files.push_back({.path = std::to_string(i), .tokens = int64_t{1} << 30, .sha256 = std::string(64, '0')});
  stream.tokens = int64_t{1} << 33;
  EXPECT_EQ(parse_token_manifest(to_json(manifest), "m").tokens(Split::kTrain), int64_t{1} << 33);
}

// Row 40: ids at and above the vocabulary, found by verify() and by read(), with file, byte and id.
TEST(TokenShards, IdsOutsideTheVocabularyAreNamed) {
  for (const uint32_t id : {100278u, 100352u, 4294967295u}) {
    const TemporaryDirectory root;
    write_small(root / "t", 100278);
    std::string bytes = slurp(root / "t/web.train-00000.npy");
    bytes.replace(8, 4, reinterpret_cast<const char*>(&id), 4);
    spill(root / "t/web.train-00000.npy", bytes);
    Ids out(4);
    const TokenShards shards(root / "t");
    const std::string read = message_of<DataError>([&] { shards.read(0, Split::kTrain, 0, out); });
    for (const std::string& message : {read, complaint(root / "t")}) {
      EXPECT_TRUE(contains(message, "web.train-00000.npy at byte 8: found token id " + std::to_string(id))) << message;
    }
  }
}

TEST(TokenShards, WriterRefusesIdsAndNames) {
  const TemporaryDirectory root;
  TokenShardWriter writer(root / "t", settings(10, 0));
  EXPECT_THROW(writer.append("s", Split::kTrain, Ids{1, 10}), DataError);
  EXPECT_THROW(writer.append("s", Split::kTrain, Ids{-1}), DataError);
  EXPECT_THROW(writer.append("", Split::kTrain, Ids{1}), DataError);
  EXPECT_THROW(writer.append("a\nb", Split::kTrain, Ids{1}), DataError);
  writer.append("../../etc/x", Split::kTrain, Ids{1});
  writer.append(".", Split::kTrain, Ids{2});
  writer.finish();
  EXPECT_EQ(complaint(root / "t"), "");
  EXPECT_EQ(TokenShards(root / "t").manifest().sources[1].name, "../../etc/x");
}

TEST(TokenShards, DamageIsNamed) {
  const TemporaryDirectory root;
  const fs::path shard = root / "t/web.train-00000.npy";
  write_small(root / "t");
  const std::string good = slurp(shard);
  spill(shard, good.substr(0, 7));
  EXPECT_TRUE(contains(complaint(root / "t"), "web.train-00000.npy: found 7 bytes, expected 8")) << complaint(root / "t");
  spill(shard, good + "x");
  EXPECT_TRUE(contains(complaint(root / "t"), "found 9 bytes"));
  std::string flipped = good;
  flipped[0] = static_cast<char>(flipped[0] ^ 4);  // still inside the vocabulary
  spill(shard, flipped);
  EXPECT_TRUE(contains(complaint(root / "t"), "web.train-00000.npy, bytes 0 to 7 (chunk 1 of 1): found sha256")) << complaint(root / "t");
  fs::remove(shard);
  EXPECT_THROW(TokenShards(root / "t"), InputError);
  spill(shard, good);
  EXPECT_EQ(complaint(root / "t"), "");
}

// Row 191: a shard that shrinks after it was opened.
TEST(TokenShards, ShorteningAfterOpeningIsAnErrorWithTheOffset) {
  const TemporaryDirectory root;
  write_small(root / "t");
  const TokenShards shards(root / "t");
  fs::resize_file(root / "t/web.train-00000.npy", 4);
  Ids out(4);
  const std::string message = message_of<DataError>([&] { shards.read(0, Split::kTrain, 0, out); });
  EXPECT_TRUE(contains(message, "web.train-00000.npy at byte 0: found 4 bytes before the end")) << message;
}

TEST(TokenManifest, DigestCoversContentsNotPlaces) {
  const TemporaryDirectory root;
  write_small(root / "a");
  write_small(root / "deeper" / fs::path("b"));
  const TokenManifest a = TokenShards(root / "a").manifest();
  EXPECT_EQ(a.digest(), TokenShards(root / "deeper/b").manifest().digest());
  EXPECT_TRUE(differences(a, TokenShards(root / "deeper/b").manifest()).empty());

  write_small(root / "c", 10, {1, 2, 4});
  const TokenManifest c = TokenShards(root / "c").manifest();
  EXPECT_NE(a.digest(), c.digest());
  const std::vector<std::string> found = differences(a, c);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(contains(found[0], "source web, train: web.train-00000.npy: sha256")) << found[0];

  TokenManifest other = a;
  other.eos_id = 1;  // row 12: the same tokens with another EOS are other data
  EXPECT_NE(a.digest(), other.digest());
  EXPECT_EQ(differences(a, other), std::vector<std::string>{"eos_id: 0 in the run, 1 now"});
}

TEST(TokenManifest, WrongOnesAreRefused) {
  const TemporaryDirectory root;
  write_small(root / "t");
  const std::string good = slurp(root / "t/manifest.json");
  EXPECT_NO_THROW(parse_token_manifest(good, "m"));
  const std::vector<std::pair<std::string, std::string>> edits = {{"deltazero-tokens-1", "deltazero-tokens-2"},
                                                                  {"\"vocab_size\": 10", "\"vocab_size\": 3e300"},
                                                                  {"\"vocab_size\": 10", "\"vocab_size\": \"10\""},
                                                                  {"\"eos_id\": 0", "\"eos_id\": 10"},
                                                                  {"\"eos_id\": 0", "\"eos_id\": -1"},
                                                                  {"\"eos_id\": 0", "\"eos_id\": 1"},
                                                                  {"\"tokens\": 4", "\"tokens\": 18446744073709551615"},
                                                                  {"\"tokens\": 4", "\"tokens\": 5"},
                                                                  {"\"bytes\": 8", "\"bytes\": 9"},
                                                                  {"web.train-00000.npy", "../web.train-00000.npy"},
                                                                  {"web.train-00000.npy", "/etc/passwd"},
                                                                  {"\"sources\": [", "\"sources\": [1,"},
                                                                  {"\"held-out\"", "\"heldout\""},
                                                                  {"uint16", "uint23"}};
  for (const auto& [from, to] : edits) {
    std::string text = good;
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    EXPECT_FALSE(message_of<DataError>([&] { parse_token_manifest(text, "m"); }).empty()) << from << " -> " << to;
  }
  for (size_t cut = 0; cut + 2 < good.size(); cut += 7) EXPECT_THROW(parse_token_manifest(good.substr(0, cut), "m"), DataError) << cut;
}

// Hostile bytes: any mutation of a manifest is read or refused with an error of ours, never a crash or another exception.
TEST(TokenManifest, MutationsNeverCrash) {
  const TemporaryDirectory root;
  write_small(root / "t");
  const std::string good = slurp(root / "t/manifest.json");
  const numerics::RandomStream random(1, "mutations");
  int64_t refused = 0;
  for (uint64_t round = 0; round < 3000; ++round) {
    std::string text = good;
    for (uint64_t edit = 0; edit <= random.bits(round * 16) % 3; ++edit) {
      const uint64_t draw = random.bits(round * 16 + 1 + edit);
      const size_t at = (draw >> 16) % text.size();
      constexpr std::string_view kBytes = "0919-.{}[]\",:e\xff\x00 tn";
      if (draw % 3 == 0) text[at] = kBytes[(draw >> 8) % kBytes.size()];
      if (draw % 3 == 1) text.erase(at, 1 + (draw >> 8) % 40);
      if (draw % 3 == 2) text.insert(at, text.substr((draw >> 32) % text.size(), 30));
      if (text.empty()) text = "{";
    }
    try {
      parse_token_manifest(text, "m");
    } catch (const DataError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1500);
}

// Row 159 and the promise of atomicity: an attempt that ends early leaves nothing that a reader takes, and the next one gives the same bytes.
TEST(TokenShardWriter, InterruptedAttemptsAreHarmless) {
  const TemporaryDirectory root;
  write_small(root / "t");
  const std::string manifest = slurp(root / "t/manifest.json");
  {
    TokenShardWriter abandoned(root / "t", settings(10, 0));
    abandoned.append("web", Split::kTrain, Ids{9, 9, 9});
  }
  EXPECT_EQ(complaint(root / "t"), "");  // the older result is whole
  EXPECT_EQ(slurp(root / "t/manifest.json"), manifest);

  // Killed between removing the old manifest and writing the new one.
  fs::create_directories(root / "t/.partial");
  fs::remove(root / "t/manifest.json");
  EXPECT_TRUE(contains(message_of<InputError>([&] { TokenShards shards(root / "t"); }), "no manifest.json"));
  write_small(root / "t");
  EXPECT_EQ(slurp(root / "t/manifest.json"), manifest);

  TokenShardWriter smaller(root / "t", settings(10, 0));
  smaller.append("other", Split::kTrain, Ids{1});
  smaller.finish();
  EXPECT_FALSE(fs::exists(root / "t/web.train-00000.npy"));
  EXPECT_EQ(complaint(root / "t"), "");
}

// A disk that fills up while writing: the cause is told, the attempt is cleaned away, the older result stays whole.
TEST(TokenShardWriter, FullDiskLeavesTheOlderResult) {
  const TemporaryDirectory root;
  write_small(root / "t");
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit small{.rlim_cur = 1 << 16, .rlim_max = limit.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string message = message_of<IoError>([&] {
    TokenShardWriter writer(root / "t", settings(10, 0));
    writer.append("web", Split::kTrain, Ids(100000, 1));
    writer.finish();
  });
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(contains(message, "web.train-00000.npy: writing")) << message;
  EXPECT_FALSE(fs::exists(root / "t/.partial"));
  EXPECT_EQ(complaint(root / "t"), "");
}

TEST(TokenShardWriter, LeavesForeignDirectoriesAlone) {
  const TemporaryDirectory root;
  fs::create_directories(root / "home");
  spill(root / "home/letter.txt", "dear");
  EXPECT_THROW(TokenShardWriter(root / "home", settings(10, 0)), CreateError);
  spill(root / "home/manifest.json", "{\"name\": \"a web page\"}");
  EXPECT_THROW(TokenShardWriter(root / "home", settings(10, 0)), CreateError);
  EXPECT_EQ(slurp(root / "home/letter.txt"), "dear");
  EXPECT_FALSE(fs::exists(root / "home/.partial"));
  EXPECT_THROW(TokenShardWriter(root / "home/letter.txt", settings(10, 0)), CreateError);
}

}  // namespace
}  // namespace dz::data
