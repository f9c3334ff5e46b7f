#include "base/thread_pool.h"

#include <immintrin.h>

#include <algorithm>

#include "base/check.h"
#include "base/trace.h"

namespace dz {

void set_flush_to_zero() { _mm_setcsr(_mm_getcsr() | 0x8040); }

ThreadPool::ThreadPool(int threads) {
  DZ_CHECK(threads >= 1, "threads", threads);
  set_flush_to_zero();
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::parallel_for(int64_t count, const std::function<void(int64_t)>& body) {
  if (count <= 0) return;
  set_flush_to_zero();
  if (workers_.empty() || count == 1) {
    for (int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    body_ = &body;
    count_ = count;
    next_.store(0, std::memory_order_relaxed);
    active_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
    error_ = nullptr;
    round_.fetch_add(1, std::memory_order_release);
  }
  wake_.notify_all();
  run_tasks();
  const auto done = [this] { return active_.load(std::memory_order_acquire) == 0; };
  spin_until(done);
  std::unique_lock lock(mutex_);
  done_.wait(lock, done);
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadPool::parallel_ranges(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
  if (count <= 0) return;
  // Four ranges a thread even out threads of unequal speed.
  const int64_t pieces = workers_.empty() ? 1 : int64_t{threads()} * 4;
  const int64_t units = (count + grain - 1) / grain;
  const int64_t size = (units + pieces - 1) / pieces * grain;
  parallel_for((count + size - 1) / size, [&](int64_t i) { body(i * size, std::min(count, (i + 1) * size)); });
}

template <class Condition>
bool ThreadPool::spin_until(Condition condition) {
  constexpr int kSpins = 400;  // about 10 us; on a host with more runnable threads than cores the time slice is not burnt
  for (int i = 0; i < kSpins; ++i) {
    if (condition()) return true;
    _mm_pause();
  }
  return false;
}

void ThreadPool::work() {
  set_flush_to_zero();
  int64_t seen = 0;
  while (true) {
    spin_until([&] { return round_.load(std::memory_order_acquire) != seen; });
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stop_ || round_.load(std::memory_order_relaxed) != seen; });
      if (stop_) return;
      seen = round_.load(std::memory_order_relaxed);
    }
    {
      const TraceSpan span("tasks");
      run_tasks();
    }
    {
      const std::lock_guard lock(mutex_);
      if (active_.fetch_sub(1, std::memory_order_release) == 1) done_.notify_one();
    }
  }
}

void ThreadPool::run_tasks() {
  try {
    for (int64_t i = next_.fetch_add(1, std::memory_order_relaxed); i < count_; i = next_.fetch_add(1, std::memory_order_relaxed)) (*body_)(i);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
  }
}

}  // namespace dz
