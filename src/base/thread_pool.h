// A fixed set of threads for loops whose iterations are independent. No result may depend on which thread runs what.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace dz {

// Flush-to-zero and denormals-are-zero for the calling thread, as every computing thread must run (docs/numerics.md).
void set_flush_to_zero();

class ThreadPool {
 public:
  // The caller of parallel_for is one of the `threads`. Every one of them runs with flush-to-zero.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Runs body(i) for i in [0, count), each once, in any order, on any thread; returns when all are done.
  // The first exception is thrown again here after the others have finished. Not reentrant.
  void parallel_for(int64_t count, const std::function<void(int64_t)>& body);

  // Cuts [0, count) into ranges of about equal size (multiples of `grain`, the last one shorter): body(begin, end).
  void parallel_ranges(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body);

 private:
  void work();
  void run_tasks();
  // Whether `condition` came true within a few microseconds: most loops are short, and sleeping costs more than they do.
  template <class Condition>
  static bool spin_until(Condition condition);

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  const std::function<void(int64_t)>* body_ = nullptr;
  int64_t count_ = 0;
  std::atomic<int64_t> next_{0};
  std::atomic<int64_t> round_{0};
  std::atomic<int> active_{0};
  bool stop_ = false;
  std::exception_ptr error_;
};

}  // namespace dz
