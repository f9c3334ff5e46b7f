#include "base/trace.h"

#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

namespace dz {
namespace {

void rest() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

void nested_spans() {
  const TraceSpan outer("outer");
  for (int i = 0; i < 3; ++i) {
    const TraceSpan inner("inner");
    rest();
  }
}

const TraceTotal* find(const std::vector<TraceTotal>& totals, const std::string& name) {
  for (const TraceTotal& total : totals) {
    if (total.name == name) return &total;
  }
  return nullptr;
}

TEST(Trace, TimeOfInnerSpansIsNotCountedTwice) {
  Trace::start();
  nested_spans();
  Trace::stop();
  const std::vector<TraceTotal> totals = Trace::totals();
  const TraceTotal* outer = find(totals, "outer");
  const TraceTotal* inner = find(totals, "inner");
  ASSERT_TRUE(outer && inner);
  EXPECT_EQ(outer->count, 1);
  EXPECT_EQ(inner->count, 3);
  EXPECT_GE(outer->seconds, inner->seconds);
  EXPECT_NEAR(outer->self_seconds, outer->seconds - inner->seconds, 1e-9);
}

TEST(Trace, NothingIsRecordedUnlessAskedFor) {
  Trace::start();
  Trace::stop();
  nested_spans();
  EXPECT_TRUE(Trace::totals().empty());
}

TEST(Trace, WritesWhatChromeReads) {
  const File file = File::create(fs::path(::testing::TempDir()) / "trace_test.json");
  Trace::start();
  std::thread other([] { nested_spans(); });
  nested_spans();
  other.join();
  Trace::stop();
  Trace::write(file.path());
  const nlohmann::json json = nlohmann::json::parse(read_file(file.path()));
  std::set<int> threads;
  for (const nlohmann::json& event : json.at("traceEvents")) {
    EXPECT_EQ(event.at("ph"), "X");
    EXPECT_GE(event.at("dur").get<double>(), 2000.0) << event.at("name");
    threads.insert(event.at("tid").get<int>());
  }
  EXPECT_EQ(json.at("traceEvents").size(), 8u);
  EXPECT_EQ(threads.size(), 2u);
  EXPECT_EQ(json.at("spansLeftOut"), 0);
}

}  // namespace
}  // namespace dz
