// Where the time of a program goes: named spans on the threads that do the work.
//
//   const TraceSpan span("attention forward");
//
// Nobody listens by default: then a span is a load and a branch. Between Trace::start() and Trace::stop() spans are kept in memory, a list a
// thread, and can be summed by name or written in Chrome's trace format, which chrome://tracing and ui.perfetto.dev open.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"

namespace dz {

struct TraceTotal {
  std::string name;
  int64_t count = 0;
  double seconds = 0;       // spans inside spans of this name included
  double self_seconds = 0;  // without the spans inside
};

class Trace {
 public:
  // Forgets what was recorded and records from here on. No span may be open on another thread.
  static void start();
  static void stop();
  static bool on() { return on_.load(std::memory_order_relaxed); }

  // Of the calling thread, the longest first.
  static std::vector<TraceTotal> totals();
  // All threads; microseconds since start(). Spans beyond kMostSpans of a thread are left out, and the file says how many.
  static void write(const fs::path& path);

  static constexpr int64_t kMostSpans = 4'000'000;

 private:
  friend class TraceSpan;
  static void add(const char* name, int64_t begin, int64_t end);
  static int64_t now();  // nanoseconds
  static std::atomic<bool> on_;
};

class TraceSpan {
 public:
  // name: a literal.
  explicit TraceSpan(const char* name) {
    if (!Trace::on()) return;
    name_ = name;
    begin_ = Trace::now();
  }
  ~TraceSpan() {
    if (name_ != nullptr) Trace::add(name_, begin_, Trace::now());
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  const char* name_ = nullptr;
  int64_t begin_ = 0;
};

}  // namespace dz
