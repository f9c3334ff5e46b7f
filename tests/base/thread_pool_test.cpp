#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace dz {
namespace {

TEST(ThreadPool, RunsEachTaskOnce) {
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    for (const int64_t count : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(count));
      pool.parallel_for(count, [&](int64_t i) { ++runs[static_cast<size_t>(i)]; });
      for (const auto& run : runs) EXPECT_EQ(run.load(), 1) << "threads " << threads << " count " << count;
    }
  }
}

TEST(ThreadPool, RangesCoverEachIndexOnce) {
  ThreadPool pool(2);
  std::vector<std::atomic<int>> runs(1003);
  pool.parallel_ranges(1003, 16, [&](int64_t begin, int64_t end) {
    EXPECT_EQ(begin % 16, 0);
    for (int64_t i = begin; i < end; ++i) ++runs[static_cast<size_t>(i)];
  });
  for (const auto& run : runs) EXPECT_EQ(run.load(), 1);
}

TEST(ThreadPool, HandsOnTheFirstErrorAndStaysUsable) {
  ThreadPool pool(2);
  EXPECT_THROW(pool.parallel_for(100,
                                 [](int64_t i) {
                                   if (i == 42) throw std::runtime_error("42");
                                 }),
               std::runtime_error);
  std::atomic<int> runs = 0;
  pool.parallel_for(10, [&](int64_t) { ++runs; });
  EXPECT_EQ(runs, 10);
}

}  // namespace
}  // namespace dz
