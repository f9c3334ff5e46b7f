// What the writer promises beyond the tokens themselves: lists of documents, chunk hashes, BOS and EOS, and going on after an end at any moment.
#include "data/token_writer.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "base/thread_pool.h"
#include "data/document_metadata.h"
#include "data/temporary.h"
#include "data/token_store.h"
#include "numerics/philox.h"
#include "text/byte_stream.h"

namespace dz::data {
namespace {

using test::message_of;
using test::slurp;
using test::spill;
using test::TemporaryDirectory;

using Ids = std::vector<int32_t>;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::map<std::string, std::string> files_of(const fs::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(directory))
    files[entry.path().filename()] = entry.is_directory() ? "directory" : slurp(entry.path());
  return files;
}

std::string unpacked(const fs::path& path) {
  const auto stream = text::ByteStream::open(path);
  std::string all, block(1000, '\0');
  while (const size_t count = stream->read(block.data(), block.size())) all.append(block, 0, count);
  return all;
}

std::string complaint(const fs::path& directory) {
  return message_of<Error>([&] {
    const TokenShards shards(directory);
    ThreadPool pool(2);
    shards.verify(pool);
  });
}

Ids tokens_of(const fs::path& directory, int64_t source = 0, Split split = Split::kTrain) {
  const TokenShards shards(directory);
  Ids ids(static_cast<size_t>(shards.manifest().sources.at(static_cast<size_t>(source)).stream(split).tokens));
  shards.read(source, split, 0, ids);
  return ids;
}

TokenShardWriter::Settings settings() { return {.vocab_size = 70000, .eos_id = 0, .fingerprint = {{"inputs", "a"}, {"options", "b"}}}; }

// The same 300 documents of two sources and both splits for every attempt, in shards of 500 tokens.
TokenShardWriter::Settings small_shards() {
  TokenShardWriter::Settings out = settings();
  out.shard_tokens = 500;
  out.chunk_bytes = 256;
  return out;
}
constexpr int kDocuments = 300;
void append(TokenShardWriter& writer, int i) {
  const numerics::RandomStream random(7, "documents");
  Ids ids(static_cast<size_t>(1 + random.bits(static_cast<uint64_t>(i)) % (i % 50 ? 30 : 1200)));
  for (size_t k = 0; k < ids.size(); ++k) ids[k] = static_cast<int32_t>(1 + random.bits(1000 + static_cast<uint64_t>(i) * 2000 + k) % 69999);
  const std::string id = "doc " + std::to_string(i);
  writer.append(i < 200 ? "web" : "code", i % 9 ? Split::kTrain : Split::kHeldOut, ids, {.id = id, .src = "in.jsonl", .loc = i + 1});
  if (i == 199) writer.close_source("web");
}

TEST(DocumentRows, AreThoseOfPythonsCsvWriter) {
  // csv.writer(f, lineterminator="\n").writerow([...]) of Python 3.11, but for the control characters of the last one.
  EXPECT_EQ(document_row(0, 12, {.id = "a", .src = "s.jsonl.gz", .loc = 3}), "0,12,a,s.jsonl.gz,3\n");
  EXPECT_EQ(document_row(1, 2, {.id = "a,b", .src = "say \"x\"", .loc = 1}), "1,2,\"a,b\",\"say \"\"x\"\"\",1\n");
  EXPECT_EQ(document_row(1, 2, {}), "1,2,,,\n");
  EXPECT_EQ(document_row(1, 2, {.id = " '\u00E9; ", .src = "\xFF", .loc = 1}), "1,2, '\u00E9; ,\uFFFD,1\n");
  EXPECT_EQ(document_row(1, 2, {.id = "two\r\nlines\t", .src = "", .loc = 1}), "1,2,two  lines ,,1\n");
}

TEST(DocumentRows, CompressedTheSameAgain) {
  const TemporaryDirectory root(test::memory_directory());
  std::string rows;
  for (int i = 0; i < 50000; ++i) rows += document_row(i, i + 1, {.id = std::to_string(i * 7919 % 50000), .src = "f", .loc = i + 1});
  spill(root / "rows.csv", rows);
  gzip_file(root / "rows.csv", root / "a.csv.gz");
  fs::rename(root / "rows.csv", root / "other.csv");
  gzip_file(root / "other.csv", root / "b.csv.gz");
  EXPECT_EQ(slurp(root / "a.csv.gz"), slurp(root / "b.csv.gz"));
  EXPECT_EQ(slurp(root / "a.csv.gz").substr(3, 5), std::string(5, '\0'));  // no name, no time
  EXPECT_EQ(unpacked(root / "a.csv.gz"), rows);
  spill(root / "empty.csv", "");
  gzip_file(root / "empty.csv", root / "empty.csv.gz");
  EXPECT_EQ(unpacked(root / "empty.csv.gz"), "");
}

// Row 36: 100 tokens into files of 64 go on in the second one, with a row in each; no file is empty.
TEST(TokenShardWriter, ALongDocumentGoesOnInTheNextFile) {
  const TemporaryDirectory root(test::memory_directory());
  TokenShardWriter::Settings chosen = settings();
  chosen.shard_tokens = 64;
  TokenShardWriter writer(root / "t", chosen);
  writer.append("s", Split::kTrain, Ids(9, 1), {.id = "x", .src = "f", .loc = 1});
  writer.append("s", Split::kTrain, Ids(100, 2), {.id = "y", .src = "f", .loc = 2});
  const TokenManifest manifest = writer.finish();
  const auto& files = manifest.sources[0].stream(Split::kTrain).files;
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].tokens, 64);
  EXPECT_EQ(files[1].tokens, 47);
  EXPECT_EQ(manifest.sources[0].stream(Split::kTrain).documents, 2);
  EXPECT_EQ(unpacked(root / "t/s.train-00000.csv.gz"), "0,10,x,f,1\n10,64,y,f,2\n");
  EXPECT_EQ(unpacked(root / "t/s.train-00001.csv.gz"), "0,47,y,f,2\n");
  EXPECT_EQ(files[0].documents_path, document_metadata_path(files[0].path));
  int64_t rows = 0;
  read_document_metadata(root / "t/s.train-00000.csv.gz", 64, [&](DocumentRange) { ++rows; });
  EXPECT_EQ(rows, 2);
}

TEST(TokenShardWriter, WholeDocumentsStartTheNextFileOrAreRefused) {
  const TemporaryDirectory root(test::memory_directory());
  TokenShardWriter::Settings chosen = settings();
  chosen.shard_tokens = 64;
  chosen.whole_documents = true;
  TokenShardWriter writer(root / "t", chosen);
  const std::string message =
      message_of<DataError>([&] { writer.append("s", Split::kTrain, Ids(64, 1), {.id = "long", .src = "f.jsonl", .loc = 7}); });
  EXPECT_TRUE(contains(message, "source s, f.jsonl:7, id long: found a document of 65 tokens, expected at most 64")) << message;
  writer.append("s", Split::kTrain, Ids(63, 1));  // with its EOS it just fits
  writer.append("s", Split::kTrain, Ids(40, 2));
  writer.append("s", Split::kTrain, Ids(24, 3));
  const TokenManifest manifest = writer.finish();
  ASSERT_EQ(manifest.sources[0].stream(Split::kTrain).files.size(), 3u);
  EXPECT_EQ(manifest.sources[0].stream(Split::kTrain).files[1].tokens, 41);
  EXPECT_EQ(complaint(root / "t"), "");
}

// Row 157. Ids in, ids out, for BOS none, another token, and the EOS itself.
TEST(TokenShardWriter, OneEosAndOneBosADocument) {
  struct Row {
    int64_t bos;
    Ids document, expected;
  };
  const Row rows[] = {{-1, {5, 6}, {5, 6, 0}},   {-1, {5, 0}, {5, 0}},   {-1, {0}, {0}},   {-1, {0, 5}, {0, 5, 0}}, {-1, {5, 0, 0}, {5, 0, 0}},
                      {9, {5, 6}, {9, 5, 6, 0}}, {9, {9, 5}, {9, 5, 0}}, {9, {9}, {9, 0}}, {9, {0}, {9, 0}},        {0, {5, 6}, {0, 5, 6, 0}},
                      {0, {0, 5}, {0, 5, 0}},    {0, {5, 0}, {0, 5, 0}}, {0, {0}, {0, 0}}, {0, {0, 0}, {0, 0}}};
  for (const Row& row : rows) {
    const TemporaryDirectory root(test::memory_directory());
    TokenShardWriter::Settings chosen = settings();
    chosen.bos_id = row.bos;
    TokenShardWriter writer(root / "t", chosen);
    writer.append("s", Split::kTrain, Ids{});  // nothing comes of an empty document
    writer.append("s", Split::kTrain, row.document);
    EXPECT_EQ(writer.finish().bos_id, row.bos);
    EXPECT_EQ(tokens_of(root / "t"), row.expected) << row.bos << " " << testing::PrintToString(row.document);
    const auto shards = std::make_shared<const TokenShards>(root / "t");
    EXPECT_EQ(shards->manifest().bos_id, row.bos);
    EXPECT_EQ(shard_store(shards, Split::kTrain)->vocabulary().bos_id, row.bos);
    // BOS decides where documents begin, so it is part of what the data is.
    TokenManifest other = shards->manifest();
    other.bos_id = row.bos < 0 ? 0 : -1;
    EXPECT_NE(other.digest(), shards->manifest().digest());
  }
}

TEST(TokenShardWriter, DamageIsNarrowedDownToAChunk) {
  const TemporaryDirectory root(test::memory_directory());
  TokenShardWriter::Settings chosen = settings();
  chosen.chunk_bytes = 1000;
  TokenShardWriter writer(root / "t", chosen);
  writer.append("s", Split::kTrain, Ids(999, 3));  // 4,000 bytes
  EXPECT_EQ(writer.finish().sources[0].stream(Split::kTrain).files[0].chunks.size(), 4u);
  EXPECT_EQ(complaint(root / "t"), "");
  const std::string good = slurp(root / "t/s.train-00000.npy"), rows = slurp(root / "t/s.train-00000.csv.gz");
  for (const int at : {0, 999, 1000, 2500, 3996}) {
    std::string bad = good;
    bad[static_cast<size_t>(at)] = static_cast<char>(bad[static_cast<size_t>(at)] ^ 1);
    spill(root / "t/s.train-00000.npy", bad);
    const std::string expected = "bytes " + std::to_string(at / 1000 * 1000) + " to " + std::to_string(at / 1000 * 1000 + 999) + " (chunk " +
                                 std::to_string(at / 1000 + 1) + " of 4): found sha256";
    EXPECT_TRUE(contains(complaint(root / "t"), expected) || contains(complaint(root / "t"), "at byte " + std::to_string(at / 4 * 4)))
        << complaint(root / "t");
  }
  spill(root / "t/s.train-00000.npy", good);
  spill(root / "t/s.train-00000.csv.gz", rows + "x");
  EXPECT_TRUE(contains(complaint(root / "t"), "s.train-00000.csv.gz: found sha256")) << complaint(root / "t");
  fs::remove(root / "t/s.train-00000.csv.gz");  // nothing in training asks for it
  EXPECT_EQ(complaint(root / "t"), "");
}

TEST(TokenManifest, OlderOnesWithoutChunksAndDocumentsStillOpen) {
  const TemporaryDirectory root(test::memory_directory());
  TokenShardWriter writer(root / "t", settings());
  writer.append("s", Split::kTrain, Ids{1, 2, 3});
  const TokenManifest manifest = writer.finish();
  TokenManifest older = manifest;
  for (ShardFile& file : older.sources[0].stream(Split::kTrain).files) file = {.path = file.path, .tokens = file.tokens, .sha256 = file.sha256};
  std::string text = to_json(older);
  const std::string chunk_line = "  \"chunk_bytes\": 67108864,\n";
  text.erase(text.find(chunk_line), chunk_line.size());
  EXPECT_FALSE(contains(text, "chunk"));
  spill(root / "t/manifest.json", text);
  EXPECT_EQ(complaint(root / "t"), "");
  EXPECT_EQ(TokenShards(root / "t").manifest().digest(), manifest.digest());  // neither takes part in the identity
  EXPECT_EQ(parse_token_manifest(to_json(manifest), "m"), manifest);
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"\"chunks\": [", "\"chunks\": [\"\","}, {"67108864", "7"}, {"67108864", "0"}, {"s.train-00000.csv.gz", "../x.csv.gz"}}) {
    std::string bad = to_json(manifest);
    bad.replace(bad.find(from), from.size(), to);
    EXPECT_THROW(parse_token_manifest(bad, "m"), DataError) << to;
  }
}

// Row 159 in one process: after a commit at any document and any number of further ones, the next attempt gives the unbroken bytes.
TEST(TokenShardWriter, GoesOnBehindTheLastCommit) {
  const TemporaryDirectory root(test::memory_directory());
  {
    TokenShardWriter writer(root / "whole", small_shards());
    for (int i = 0; i < kDocuments; ++i) append(writer, i);
    writer.finish();
  }
  const auto whole = files_of(root / "whole");
  ASSERT_GT(whole.size(), 40u);
  for (const int commit : {1, 13, 120, 199, 200, 250, 299, 300}) {
    for (const int more : {0, 1, 60}) {
      const fs::path out = root / ("t" + std::to_string(commit) + "-" + std::to_string(more));
      {
        TokenShardWriter writer(out, small_shards());
        EXPECT_EQ(writer.note() + writer.notice(), "");
        for (int i = 0; i < std::min(kDocuments, commit + more); ++i) {
          append(writer, i);
          if (i + 1 == commit / 2 || i + 1 == commit) writer.commit(std::to_string(i + 1));
        }
      }
      EXPECT_FALSE(fs::exists(out / "manifest.json"));
      TokenShardWriter writer(out, small_shards());
      EXPECT_EQ(writer.note(), std::to_string(commit));
      EXPECT_TRUE(contains(writer.notice(), "going on"));
      for (int i = std::stoi(writer.note()); i < kDocuments; ++i) append(writer, i);
      writer.finish();
      EXPECT_EQ(files_of(out), whole) << commit << " " << more;
    }
  }
  // Control: a document less is another directory.
  TokenShardWriter writer(root / "less", small_shards());
  for (int i = 1; i < kDocuments; ++i) append(writer, i);
  writer.finish();
  EXPECT_NE(files_of(root / "less"), whole);
}

TEST(TokenShardWriter, AnAttemptOfOtherThingsIsNotContinued) {
  const TemporaryDirectory root(test::memory_directory());
  const auto begin = [&] {
    fs::remove_all(root / "t");
    TokenShardWriter writer(root / "t", small_shards());
    for (int i = 0; i < 100; ++i) append(writer, i);
    writer.commit("100");
  };
  const auto notice = [&](const TokenShardWriter::Settings& chosen) {
    const TokenShardWriter writer(root / "t", chosen);
    EXPECT_EQ(writer.note(), "");
    for (const auto& entry : fs::directory_iterator(root / "t/.partial")) EXPECT_EQ(entry.path().filename(), "lock");
    return writer.notice();
  };
  TokenShardWriter::Settings other = small_shards();
  other.fingerprint[0].second = "other";
  begin();
  EXPECT_EQ(notice(other), "an interrupted attempt was made with other inputs; starting over");
  other.fingerprint[1].second = "other";
  begin();
  EXPECT_EQ(notice(other), "an interrupted attempt was made with other inputs, options; starting over");

  const auto damaged = [&](const std::string& name, const std::function<void(const fs::path&)>& damage) {
    begin();
    fs::path found;
    for (const auto& entry : fs::directory_iterator(root / "t/.partial"))
      if (entry.path().filename().string().ends_with(name)) found = entry.path();
    damage(found);
    const std::string text = notice(small_shards());
    EXPECT_TRUE(contains(text, "cannot be continued (") && contains(text, name)) << text;
  };
  damaged("web.train-00000.npy", [](const fs::path& path) { fs::resize_file(path, fs::file_size(path) - 1); });
  damaged("web.train-00000.npy", [](const fs::path& path) { fs::remove(path); });
  damaged("web.train-00000.csv.gz", [](const fs::path& path) { fs::remove(path); });
  damaged(".csv", [](const fs::path& path) { fs::resize_file(path, fs::file_size(path) - 1); });
  const auto flip = [](const fs::path& path) {
    std::string bytes = slurp(path);
    bytes[bytes.size() / 2] ^= 1;
    spill(path, bytes);
  };
  for (const char* closed : {"web.train-00000.npy", "web.train-00000.csv.gz"}) damaged(closed, flip);
  begin();
  std::vector<std::string> growing;
  for (const auto& entry : fs::directory_iterator(root / "t/.partial"))
    if (entry.path().extension() == ".csv") growing.push_back(entry.path().stem().string());
  ASSERT_FALSE(growing.empty());
  for (const std::string& stem : growing)
    for (const char* ending : {".npy", ".csv"}) damaged((stem + ending).c_str(), flip);
  begin();
  const std::string state = slurp(root / "t/.partial/state.json");
  for (size_t cut = 0; cut < state.size(); cut += 37) {
    begin();
    spill(root / "t/.partial/state.json", state.substr(0, cut));
    EXPECT_TRUE(contains(notice(small_shards()), "starting over")) << cut;
  }
}

// A kill between two of the final moves: the next attempt only has to finish them.
TEST(TokenShardWriter, FinishesTheMovesOfAnEarlierAttempt) {
  const TemporaryDirectory root(test::memory_directory());
  {
    TokenShardWriter old(root / "t", settings());
    old.append("old", Split::kTrain, Ids{1});
    old.finish();
  }
  fs::create_directories(root / "t/web.train-00003.npy/in the way");
  {
    TokenShardWriter writer(root / "t", small_shards());
    for (int i = 0; i < kDocuments; ++i) append(writer, i);
    EXPECT_THROW(writer.finish("all"), IoError);
  }
  EXPECT_TRUE(fs::exists(root / "t/.partial/manifest.json"));
  EXPECT_TRUE(contains(complaint(root / "t"), "no manifest.json"));
  fs::remove_all(root / "t/web.train-00003.npy");
  {
    TokenShardWriter writer(root / "t", small_shards());
    EXPECT_TRUE(writer.all_written());
    EXPECT_EQ(writer.note(), "all");
    writer.finish("all");
  }
  EXPECT_EQ(complaint(root / "t"), "");
  TokenShardWriter whole(root / "whole", small_shards());
  for (int i = 0; i < kDocuments; ++i) append(whole, i);
  whole.finish();
  EXPECT_EQ(files_of(root / "t"), files_of(root / "whole"));  // the older result is gone too
}

// A kill in the last clean-up: the result is there, and is seen to be that of the same attempt.
TEST(TokenShardWriter, CleansUpBehindAnEarlierAttempt) {
  const TemporaryDirectory root(test::memory_directory());
  std::string state;
  {
    TokenShardWriter writer(root / "t", small_shards());
    for (int i = 0; i < kDocuments; ++i) append(writer, i);
    fs::create_directories(root / "t/web.train-00003.npy/in the way");
    EXPECT_THROW(writer.finish("all"), IoError);
    state = slurp(root / "t/.partial/state.json");
    fs::remove_all(root / "t/web.train-00003.npy");
  }
  TokenShardWriter(root / "t", small_shards()).finish("all");
  const auto whole = files_of(root / "t");
  const auto left_over = [&](bool partial, const char* place) {
    if (partial) fs::create_directories(root / "t/.partial");
    spill(root / "t" / place, state);
  };
  const auto finish = [&] {
    {
      TokenShardWriter writer(root / "t", small_shards());
      EXPECT_TRUE(writer.all_written()) << writer.notice();
      EXPECT_EQ(writer.note(), "all");
      writer.finish("all");
    }
    EXPECT_EQ(files_of(root / "t"), whole);
  };
  left_over(true, ".partial/state.json");
  finish();
  left_over(true, ".state.json");
  finish();
  left_over(false, ".state.json");
  finish();
  // Controls: another manifest, and a damaged file, are not it.
  for (const char* name : {"manifest.json", "web.train-00000.npy"}) {
    left_over(true, ".partial/state.json");
    const std::string before = slurp(root / "t" / name);
    std::string bytes = before;
    bytes[bytes.size() / 2] ^= 1;
    spill(root / "t" / name, bytes);
    EXPECT_FALSE(TokenShardWriter(root / "t", small_shards()).all_written()) << name;
    fs::create_directories(root / "t");
    spill(root / "t" / name, before);
  }
}

TEST(TokenShardWriter, TwoAtATimeAreRefused) {
  const TemporaryDirectory root(test::memory_directory());
  TokenShardWriter first(root / "t", settings());
  first.append("s", Split::kTrain, Ids{1});
  EXPECT_THROW(TokenShardWriter(root / "t", settings()), TryAgainError);
  first.finish();
  EXPECT_EQ(complaint(root / "t"), "");
}

}  // namespace
}  // namespace dz::data
