#include "cli/corpus_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <thread>

#include "base/error.h"

namespace dz::cli {
namespace fs = std::filesystem;

std::vector<CorpusInput> parse_inputs(const std::vector<std::string>& arguments) {
  std::vector<CorpusInput> inputs;
  std::vector<bool> named;
  for (const std::string& argument : arguments) {
    std::error_code error;
    const size_t equal = argument.find('=');
    const bool has_name = equal != std::string::npos && equal > 0 && argument.find('/') > equal && !fs::exists(argument, error);
    const fs::path path = has_name ? argument.substr(equal + 1) : argument;
    if (path.empty()) throw UsageError("--input " + argument + ": expected PATH or NAME=PATH");
    // "dir/" and "." have no last component of their own.
    const fs::path full = fs::absolute(path).lexically_normal();
    const std::string base = (full.has_filename() ? full : full.parent_path()).filename().string();
    const std::string name = has_name ? argument.substr(0, equal) : base;
    if (name.empty()) throw UsageError("--input " + argument + ": has no base name; give it a name: NAME=" + path.string());
    const auto same = std::find_if(inputs.begin(), inputs.end(), [&](const CorpusInput& input) { return input.name == name; });
    if (same == inputs.end()) {
      inputs.push_back({name, {path}});
      named.push_back(has_name);
    } else if (has_name && named[static_cast<size_t>(same - inputs.begin())]) {
      same->paths.push_back(path);
    } else {
      throw UsageError("--input " + argument + ": a source named " + name + " is there already; give it a name: NAME=" + path.string());
    }
  }
  return inputs;
}

void warn_about(const std::string& name, const text::ExtractCounts& counts) {
  const auto line = [&](int64_t count, const char* what, const char* fate) {
    if (count > 0) fmt::print(stderr, "note: {}: {} {}{} {}\n", name, count, what, count == 1 ? "" : "s", fate);
  };
  line(counts.skipped_files, "file", "skipped: not txt, md, rst, pod, html or jsonl");
  line(counts.empty_documents, "empty document", "dropped");
  line(counts.bad_lines, "bad line", "left out");
  for (const std::string& bad : counts.first_bad) std::fprintf(stderr, "note: %s: left out %s\n", name.c_str(), bad.c_str());
  line(counts.replaced, "ill-formed UTF-8 sequence", "replaced by U+FFFD");
}

int default_threads() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

ProgressLine::ProgressLine() : terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  if (shown_) std::fputs("\r\033[K", stderr);
}

void ProgressLine::show(const std::string& line) {
  if (!terminal_) return;
  shown_ = true;
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
  std::fflush(stderr);
}

std::string progress_text(int64_t done, int64_t total, int64_t bytes, double bytes_per_second, double seconds_left) {
  constexpr int kCells = 24;
  const double share = total > 0 ? std::min(1.0, static_cast<double>(done) / static_cast<double>(total)) : 0.0;
  const int full = static_cast<int>(share * kCells);
  std::string text = fmt::format("{:3.0f}%  [{}{}]  {:.1f} MB", std::floor(share * 100), std::string(static_cast<size_t>(full), '#'),
                                 std::string(static_cast<size_t>(kCells - full), '.'), static_cast<double>(bytes) * 1e-6);
  if (bytes_per_second > 0) text += fmt::format("  {:.1f} MB/s", bytes_per_second * 1e-6);
  if (seconds_left < 0) return text;
  const auto left = static_cast<int64_t>(std::ceil(seconds_left));
  if (left >= 3600) return text + fmt::format("  {}:{:02}:{:02} left", left / 3600, left / 60 % 60, left % 60);
  return text + fmt::format("  {}:{:02} left", left / 60, left % 60);
}

ProgressBar::ProgressBar(std::string verb) : verb_(std::move(verb)) {}

void ProgressBar::show(const std::string& what, int64_t done, int64_t total, int64_t bytes) {
  constexpr std::chrono::seconds kPlainEvery(30);
  const Clock::time_point now = Clock::now();
  if (!begun_) {
    begun_ = true;
    first_done_ = done;
    first_bytes_ = bytes;
    start_ = last_plain_ = now;
  }
  const double seconds = std::chrono::duration<double>(now - start_).count();
  double rate = 0, left = -1;
  if (seconds > 0.5 && done > first_done_) {
    rate = static_cast<double>(bytes - first_bytes_) / seconds;
    left = seconds * static_cast<double>(total - done) / static_cast<double>(done - first_done_);
  }
  const std::string text = fmt::format("{}  {}  {}", verb_, what, progress_text(done, total, bytes, rate, left));
  line_.show(text);
  if (line_.terminal() || now - last_plain_ < kPlainEvery) return;
  last_plain_ = now;
  std::fprintf(stderr, "%s\n", text.c_str());
}

}  // namespace dz::cli
