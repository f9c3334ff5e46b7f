// A thread for one piece of work at a time, so that reading and writing go on beside computing. Internal to this room.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "base/check.h"

namespace dz::data {

// One thread that does what it is given, in order: memory that it takes and leaves stays in one place of the allocator, which a new thread
// for each batch would spread.
class BackgroundThread {
 public:
  BackgroundThread() : thread_([this] { work(); }) {}
  ~BackgroundThread() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }
  BackgroundThread(const BackgroundThread&) = delete;
  BackgroundThread& operator=(const BackgroundThread&) = delete;

  // The last one must have come to its end. What it throws comes out of wait().
  void start(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      DZ_CHECK(!task_);
      task_ = std::move(task);
    }
    wake_.notify_one();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return !task_; });
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [&] { return task_ || stop_; });
      if (!task_) return;
      lock.unlock();
      std::exception_ptr error;
      try {
        task_();
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      error_ = error;
      task_ = nullptr;
      done_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::function<void()> task_;
  std::exception_ptr error_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace dz::data
