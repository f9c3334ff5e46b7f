// Reports of small invented runs: what must be on the page, what must not, and what damage may not stop it.
#include "track/report.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <string>

#include "base/error.h"
#include "track/run_log.h"
#include "track/tables.h"

namespace dz::track {
namespace {

class ReportTest : public testing::Test {
 protected:
  ReportTest() {
    std::string pattern = (fs::temp_directory_path() / "deltazero-report-XXXXXX").string();
    run_ = mkdtemp(pattern.data());
  }
  ~ReportTest() override { fs::remove_all(run_); }

  void write(const fs::path& name, std::string_view text) {
    fs::create_directories((run_ / name).parent_path());
    File file = File::create(run_ / name);
    file.write(text);
    file.close();
  }
  void write_steps(int64_t count, const std::string& tail = "") {
    std::string text;
    for (int64_t step = 1; step <= count; ++step) text += line(step);
    write("metrics.jsonl", text + tail);
  }
  static std::string line(int64_t step, const std::string& loss = "4.5") {
    return R"({"step":)" + std::to_string(step) + R"(,"loss":)" + loss +
           R"(,"loss_hex":"0x1.2p+2","grad_norm":0.5,"grad_norm_hex":"0x1p-1","lr":0.001,)" + R"("skipped":false,"tokens":4096,"tokens_total":)" +
           std::to_string(step * 4096) + R"(,"seconds":0.5,"tokens_per_second":8192,"mfu":0.5,)" +
           R"("batch_digest":"aaaabbbbccccddddeeeeffff00001111","digest":{"parameters":"p)" + std::to_string(step) +
           R"(","moments":"m","trainer":"t"}})" + "\n";
  }
  ExitCode code_of_failure() {
    try {
      write_report(run_);
    } catch (const Error& error) {
      message_ = error.what();
      return error.code();
    }
    return ExitCode::kDone;
  }

  fs::path run_;
  std::string message_;
};

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST_F(ReportTest, ShowsWhatTheRunDid) {
  write_steps(40);
  write(
      "landmarks/step-0/loss.json",
      R"({"step":0,"split":"held-out","sources":[{"name":"perl","tokens":10,"loss":8.25,"perplexity":3827}],"total":{"tokens":10,"loss":8.25,"perplexity":3827}})");
  write(
      "landmarks/step-40/loss.json",
      R"({"step":40,"split":"held-out","sources":[{"name":"perl","tokens":10,"loss":4.25,"perplexity":70.1}],"total":{"tokens":10,"loss":4.25,"perplexity":70.1}})");
  write("landmarks/step-40/sample.txt", "Once upon a time");
  write("recipe.yaml", "seed: 1234\n");
  write("environment.json", R"({"cpu":"some CPU"})");
  write("starts.jsonl", "{\"step\":0,\"isa\":\"avx2\"}\n{\"step\":20,\"isa\":\"scalar\"}\n{\"step\":3");
  const fs::path path = write_report(run_);
  EXPECT_EQ(path, run_ / "report.html");
  const std::string page = read_file(path);
  for (const char* part : {"163,840 tokens", "p40", "Once upon a time", "seed: 1234", "some CPU", "\"resumes\":[20]", "\"perl\":[[0,8.25],[40,4.25]]",
                           "-4.000", "Chart.js v"})
    EXPECT_TRUE(contains(page, part)) << part;
  EXPECT_FALSE(contains(page, "class=\"warning\">metrics"));
}

TEST_F(ReportTest, HostileTextStaysText) {
  const std::string attack = "</pre></script><script>alert(1)</script>{{css}}\xFF<img src=x onerror=alert(2)>";
  write_steps(1, R"~({"step":2,"loss":4,"skipped":true,"skip_reason":"</td><script>alert(3)</script>"})~"
                 "\n");
  write("landmarks/step-1/sample.txt", attack);
  write("landmarks/step-1/loss.json",
        R"~({"split":"held-out","sources":[{"name":"</script><script>alert(4)</script>","loss":1}],"total":{"loss":1}})~");
  write("recipe.yaml", attack);
  write("environment.json", R"~({"<script>alert(5)":"<script>alert(6)"})~");
  write("starts.jsonl", R"~({"<script>alert(7)":["<script>alert(8)"]})~");
  const std::string page = render_report(run_);
  EXPECT_FALSE(contains(page, "<script>alert("));
  EXPECT_FALSE(contains(page, "<img"));
  EXPECT_TRUE(contains(page, "&lt;script&gt;alert(1)"));
  EXPECT_TRUE(contains(page, "{{css}}"));
  // The control: unescaped, the same text would have been found.
  EXPECT_TRUE(contains(attack, "<script>alert("));
}

TEST_F(ReportTest, TornLastLineIsToleratedAndTold) {
  write_steps(3, R"({"step":4,"lo)");
  const RunLog log = read_run(run_);
  EXPECT_EQ(log.steps.size(), 3u);
  ASSERT_EQ(log.warnings.size(), 1u);
  EXPECT_TRUE(contains(log.warnings[0], "middle of a line"));
}

TEST_F(ReportTest, BrokenLinesInTheMiddleAreCounted) {
  write("metrics.jsonl", line(1) + "garbage\n[]\n{\"step\":\"two\"}\n" + line(2));
  const RunLog log = read_run(run_);
  EXPECT_EQ(log.steps.size(), 2u);
  ASSERT_EQ(log.warnings.size(), 1u);
  EXPECT_TRUE(contains(log.warnings[0], "3 lines are not readable, the first is line 2")) << log.warnings[0];
}

TEST_F(ReportTest, AStepWrittenTwiceCountsOnce) {
  write("metrics.jsonl", line(1) + line(2, "9.0") + line(3, "9.0") + line(2, "5.0") + line(3, "4.0"));
  const RunLog log = read_run(run_);
  ASSERT_EQ(log.steps.size(), 3u);
  EXPECT_EQ(log.steps[1].loss, 5.0);
  EXPECT_EQ(log.steps[2].loss, 4.0);
  EXPECT_EQ(log.certificates.size(), 3u);
}

TEST_F(ReportTest, NumbersThatAreNotFiniteBecomeGaps) {
  write("metrics.jsonl", line(1) + line(2, "null") + line(3, "1e999"));
  const RunLog log = read_run(run_);
  ASSERT_GE(log.steps.size(), 2u);
  EXPECT_TRUE(std::isnan(log.steps[1].loss));
  EXPECT_TRUE(contains(render_report(run_), "[2,null]"));
}

TEST_F(ReportTest, DamageBesideTheMetricsIsAWarning) {
  write_steps(2);
  write("landmarks/step-2/loss.json", "{\"step\":2,");
  write("landmarks/step-99999999999999999999/loss.json", "{}");
  write("environment.json", "[");
  const std::string page = render_report(run_);
  EXPECT_TRUE(contains(page, "landmarks/step-2/loss.json is not readable"));
  EXPECT_TRUE(contains(page, "environment.json is not readable"));
}

TEST_F(ReportTest, RunsWithNothingToShowAreErrors) {
  EXPECT_EQ(code_of_failure(), ExitCode::kNoInput);
  EXPECT_TRUE(contains(message_, "no metrics.jsonl")) << message_;
  write("metrics.jsonl", "");
  EXPECT_EQ(code_of_failure(), ExitCode::kNoInput);
  EXPECT_TRUE(contains(message_, "no finished step")) << message_;
  write("metrics.jsonl", "{\"step\":1");
  EXPECT_EQ(code_of_failure(), ExitCode::kNoInput);
  run_ /= "absent";
  EXPECT_EQ(code_of_failure(), ExitCode::kNoInput);
  run_ = run_.parent_path();
}

TEST_F(ReportTest, LongRunsMakeSmallPages) {
  write_steps(20'000);
  const std::string page = render_report(run_);
  EXPECT_LT(page.size(), 1'000'000u);
  EXPECT_TRUE(contains(page, "The last 400 of 20,000"));
}

TEST(ReportNumbers, ReadWell) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(-1234567), "-1,234,567");
  EXPECT_EQ(short_number(4.5), "4.500");
  EXPECT_EQ(short_number(std::nan("")), "–");
}

}  // namespace
}  // namespace dz::track
