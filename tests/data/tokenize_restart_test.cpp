// Row 159: tokenize killed at any moment and started again gives the bytes of the unbroken run.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <map>
#include <thread>

#include "base/error.h"
#include "data/temporary.h"
#include "data/tokenize.h"
#include "text/files.h"

namespace dz::data {
namespace {

using text::TestFolder;

std::map<std::string, std::string> files_of(const fs::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(directory)) files[entry.path().filename()] = read_file(entry.path());
  return files;
}

class Restart : public testing::Test {
 protected:
  Restart() {
    const std::string mixed = read_file(std::string(DZ_GOLDEN) + "/tokenizer/corpus-mixed.txt");
    std::string lines;
    for (int i = 0; i < 400; ++i) {
      const size_t size = mixed.find(' ', static_cast<size_t>(i % 50 ? 10 + i : 3000));
      std::string text = "document " + std::to_string(i) + " ";
      for (const char c : mixed.substr(0, size)) text += static_cast<unsigned char>(c) < ' ' || c == '"' || c == '\\' ? ' ' : c;
      lines += "{\"id\":\"d" + std::to_string(i) + "\",\"text\":\"" + text + "\"}\n";
      if (i % 40 == 0) lines += "not JSON\n";
    }
    corpus_.write("a/1.jsonl", lines.substr(0, lines.find('\n', lines.size() / 2) + 1));
    corpus_.write("a/2.jsonl.gz", text::gzip(lines.substr(lines.find('\n', lines.size() / 2) + 1)));
    corpus_.write("b/1.txt", "a source of one document");
    corpus_.write("c/1.jsonl.zst", text::zstd(lines));
    for (const char* name : {"a", "b", "c"}) sources_.push_back({name, {corpus_.path() / name}});
  }

  TokenizeSettings settings() const {
    TokenizeSettings out{.held_out = 0.001, .threads = 2, .extract = {.skip_bad_lines = true}};
    out.shard_tokens = 5000;
    out.batch_bytes = 4000;
    out.commit_seconds = 0;
    return out;
  }

  TokenizeResult run(const fs::path& out, const TokenizeSettings& settings, const TokenizeHooks& hooks = {}) const {
    return tokenize(tokenizer_, sources_, out, settings, hooks);
  }

  // A process that tokenizes and kills itself at the given call of `progress`.
  pid_t start(const fs::path& out, int die_at = -1) const {
    const pid_t child = ::fork();
    if (child != 0) return child;
    int calls = 0;
    const TokenizeHooks hooks{.progress =
                                  [&](const TokenizeProgress&) {
                                    if (calls++ == die_at) ::kill(::getpid(), SIGKILL);
                                  },
                              .notice = nullptr};
    int code = 1;
    try {
      run(out, settings(), hooks);
      code = 0;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    ::_exit(code);
  }

  // True when the process was killed, false when it came to its end.
  static bool was_killed(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
  }

  TestFolder corpus_;
  test::TemporaryDirectory out_{test::memory_directory()};
  text::Tokenizer tokenizer_ = text::Tokenizer::load(std::string(DZ_GOLDEN) + "/tokenizer/mixed-512.json");
  std::vector<TextSource> sources_;
};

TEST_F(Restart, TwentyKillsAtRandomMoments) {
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_FALSE(was_killed(start(out_ / "whole")));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const auto whole = files_of(out_ / "whole");
  ASSERT_GT(whole.size(), 20u);

  uint64_t random = 159;
  const auto draw = [&] {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(random >> 40) / static_cast<double>(1 << 24);
  };
  int kills = 0, ends = 0;
  for (int attempt = 0; kills < 20 && attempt < 200; ++attempt) {
    const pid_t child = start(out_ / "t");
    std::this_thread::sleep_for(std::chrono::duration<double>(draw() * seconds * 0.5));
    ::kill(child, SIGKILL);
    if (was_killed(child)) {
      ++kills;
      continue;
    }
    ++ends;
    EXPECT_EQ(files_of(out_ / "t"), whole);
    fs::remove_all(out_ / "t");
  }
  EXPECT_EQ(kills, 20);
  while (was_killed(start(out_ / "t"))) {
  }
  EXPECT_EQ(files_of(out_ / "t"), whole);
}

// Each attempt gets one batch further than it began and dies: it comes to an end, with the same bytes, and each one goes on.
TEST_F(Restart, AttemptsThatDieAfterOneBatchComeToAnEnd) {
  run(out_ / "whole", settings());
  int kills = 0;
  while (was_killed(start(out_ / "t", 1))) ASSERT_LT(++kills, 500);
  EXPECT_GT(kills, 20);
  EXPECT_EQ(files_of(out_ / "t"), files_of(out_ / "whole"));
}

TEST_F(Restart, CountsAreThoseOfTheUnbrokenRun) {
  const TokenizeResult whole = run(out_ / "whole", settings());
  ASSERT_TRUE(was_killed(start(out_ / "t", 7)));
  std::string notice;
  int64_t first = -1;
  const TokenizeResult result = run(out_ / "t", settings(),
                                    {.progress = [&](const TokenizeProgress& at) { first = first < 0 ? at.text_bytes : first; },
                                     .notice = [&](const std::string& text) { notice = text; }});
  EXPECT_EQ(notice, "going on with an interrupted attempt");
  EXPECT_GT(first, 10000);
  EXPECT_EQ(result.manifest, whole.manifest);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(result.sources[i].documents, whole.sources[i].documents);
    EXPECT_EQ(result.sources[i].tokens, whole.sources[i].tokens);
    EXPECT_EQ(result.sources[i].text.bytes, whole.sources[i].text.bytes);
    EXPECT_EQ(result.sources[i].text.bad_lines, i == 1 ? 0 : 10);
    EXPECT_EQ(result.sources[i].text.first_bad, whole.sources[i].text.first_bad);
  }
}

TEST_F(Restart, ChangesBetweenAttemptsAreNoticed) {
  const auto notice_after = [&](TokenizeSettings chosen) {
    std::string notice;
    run(out_ / "t", chosen, {.progress = nullptr, .notice = [&](const std::string& text) { notice = text; }});
    const auto written = files_of(out_ / "t");
    fs::remove_all(out_ / "t");
    run(out_ / "t", chosen);
    EXPECT_EQ(written, files_of(out_ / "t"));
    return notice;
  };
  const auto cut_off = [&] {
    fs::remove_all(out_ / "t");
    ASSERT_TRUE(was_killed(start(out_ / "t", 9)));
  };
  cut_off();
  TokenizeSettings chosen = settings();
  chosen.threads = 1;  // these three are nobody's business
  chosen.batch_bytes = 1 << 20;
  chosen.commit_seconds = 100;
  EXPECT_EQ(notice_after(chosen), "going on with an interrupted attempt");
  cut_off();
  chosen.extract.strip = true;
  EXPECT_EQ(notice_after(chosen), "an interrupted attempt was made with other options; starting over");
  cut_off();
  const fs::path file = corpus_.path() / "a/1.jsonl";
  fs::last_write_time(file, fs::last_write_time(file) + std::chrono::seconds(1));
  EXPECT_EQ(notice_after(settings()), "an interrupted attempt was made with other inputs; starting over");
  cut_off();
  corpus_.write("c/2.txt", "one more");
  EXPECT_EQ(notice_after(settings()), "an interrupted attempt was made with other inputs; starting over");
  cut_off();
  tokenizer_ = text::Tokenizer::load(std::string(DZ_GOLDEN) + "/tokenizer/mixed-300.json");
  EXPECT_EQ(notice_after(settings()), "an interrupted attempt was made with other tokenizer; starting over");
}

// Contents are compared, not only sizes: of a file that grows and of one that is closed.
TEST_F(Restart, AFlippedByteStartsOver) {
  run(out_ / "whole", settings());
  for (const char* ending : {".csv", ".csv.gz"}) {
    fs::remove_all(out_ / "t");
    ASSERT_TRUE(was_killed(start(out_ / "t", 9)));
    fs::path found;
    for (const auto& entry : fs::directory_iterator(out_ / "t/.partial"))
      if (entry.path().filename().string().ends_with(ending) && fs::file_size(entry.path()) > 0) found = entry.path();
    ASSERT_FALSE(found.empty()) << ending;
    std::string bytes = read_file(found);
    bytes[bytes.size() / 4] ^= 1;
    write_file_atomic(found, bytes);
    std::string notice;
    run(out_ / "t", settings(), {.progress = nullptr, .notice = [&](const std::string& text) { notice = text; }});
    EXPECT_NE(notice.find(found.filename().string() + ": its contents are not those that were written); starting over"), std::string::npos) << notice;
    EXPECT_EQ(files_of(out_ / "t"), files_of(out_ / "whole"));
  }
}

// A disk that is full for a while: the cause is told, and afterwards the same call goes on.
TEST_F(Restart, AFullDiskLosesNothing) {
  TokenizeSettings chosen = settings();
  chosen.shard_tokens = 1 << 20;
  run(out_ / "whole", chosen);
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit small{.rlim_cur = 1 << 16, .rlim_max = limit.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string message, notice;
  try {
    run(out_ / "t", chosen);
  } catch (const IoError& error) {
    message = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, handler);
  EXPECT_NE(message.find("writing"), std::string::npos) << message;
  run(out_ / "t", chosen, {.progress = nullptr, .notice = [&](const std::string& text) { notice = text; }});
  EXPECT_EQ(notice, "going on with an interrupted attempt");
  EXPECT_EQ(files_of(out_ / "t"), files_of(out_ / "whole"));
}

}  // namespace
}  // namespace dz::data
