#include "base/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>

namespace dz {
namespace {

struct Event {
  const char* name;
  int64_t begin, end;  // nanoseconds
};

struct ThreadEvents {
  std::vector<Event> events;  // in the order in which they ended
  int64_t left_out = 0;
};

// Lists outlive their threads, so that a trace can be written after a pool is gone.
struct Recorder {
  std::mutex mutex;
  std::vector<std::shared_ptr<ThreadEvents>> threads;
  int64_t started = 0;
};

Recorder& recorder() {
  static Recorder instance;
  return instance;
}

ThreadEvents& of_this_thread() {
  thread_local const std::shared_ptr<ThreadEvents> mine = [] {
    auto events = std::make_shared<ThreadEvents>();
    const std::lock_guard lock(recorder().mutex);
    recorder().threads.push_back(events);
    return events;
  }();
  return *mine;
}

// Spans of a thread nest, and an inner one ends first: what comes earlier in the list and began later lies inside.
std::vector<TraceTotal> sum_by_name(const std::vector<Event>& events) {
  std::map<std::string_view, TraceTotal> totals;
  std::vector<Event> done;  // ended, not yet inside another
  for (const Event& event : events) {
    int64_t inside = 0;
    for (; !done.empty() && done.back().begin >= event.begin; done.pop_back()) inside += done.back().end - done.back().begin;
    TraceTotal& total = totals[event.name];
    const int64_t length = event.end - event.begin;
    total.name = event.name;
    ++total.count;
    total.seconds += 1e-9 * static_cast<double>(length);
    total.self_seconds += 1e-9 * static_cast<double>(length - inside);
    done.push_back(event);
  }
  std::vector<TraceTotal> sorted;
  for (auto& [name, total] : totals) sorted.push_back(std::move(total));
  std::ranges::sort(sorted, [](const TraceTotal& a, const TraceTotal& b) { return a.self_seconds > b.self_seconds; });
  return sorted;
}

}  // namespace

std::atomic<bool> Trace::on_{false};

int64_t Trace::now() { return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void Trace::start() {
  const std::lock_guard lock(recorder().mutex);
  for (const auto& thread : recorder().threads) *thread = {};
  recorder().started = now();
  on_.store(true);
}

void Trace::stop() { on_.store(false); }

void Trace::add(const char* name, int64_t begin, int64_t end) {
  ThreadEvents& mine = of_this_thread();
  if (static_cast<int64_t>(mine.events.size()) < kMostSpans) {
    mine.events.push_back({name, begin, end});
  } else {
    ++mine.left_out;
  }
}

std::vector<TraceTotal> Trace::totals() { return sum_by_name(of_this_thread().events); }

void Trace::write(const fs::path& path) {
  const std::lock_guard lock(recorder().mutex);
  std::string out = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
  int64_t left_out = 0, thread_number = 0;
  const char* separator = "\n";
  for (const auto& thread : recorder().threads) {
    for (const Event& event : thread->events) {
      out += fmt::format("{}{{\"name\": \"{}\", \"ph\": \"X\", \"pid\": 1, \"tid\": {}, \"ts\": {:.3f}, \"dur\": {:.3f}}}", separator, event.name,
                         thread_number, 1e-3 * static_cast<double>(event.begin - recorder().started),
                         1e-3 * static_cast<double>(event.end - event.begin));
      separator = ",\n";
    }
    left_out += thread->left_out;
    ++thread_number;
  }
  out += fmt::format("\n], \"spansLeftOut\": {}}}\n", left_out);
  write_file_atomic(path, out);
}

}  // namespace dz
