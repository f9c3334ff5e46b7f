// What the verbs that read text have in common: --input [NAME=]PATH, and how they report what was read.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "text/extract.h"

namespace dz::cli {

struct CorpusInput {
  std::string name;
  std::vector<std::filesystem::path> paths;
};

// Each argument is NAME=PATH or PATH, which is named by its base name. An argument that exists as a path is one, whatever it contains.
// A NAME that is given twice joins its paths in the order of the arguments; UsageError when two base names are equal.
std::vector<CorpusInput> parse_inputs(const std::vector<std::string>& arguments);

// Lines on stderr about text that was left out or changed: skipped files, empty documents, bad lines, ill-formed UTF-8.
void warn_about(const std::string& name, const text::ExtractCounts& counts);

int default_threads();

// A line on stderr that replaces itself, only on a terminal.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();  // clears the line
  void show(const std::string& line);
  bool terminal() const { return terminal_; }

 private:
  bool terminal_;
  bool shown_ = false;
};

// How far a long piece of work is: a bar with rate and time left on a terminal, elsewhere a plain line every half minute.
class ProgressBar {
 public:
  explicit ProgressBar(std::string verb);
  // `done` of `total` units of work, of which the rate is not shown; `bytes` of which it is. The first call says where this attempt begins.
  void show(const std::string& what, int64_t done, int64_t total, int64_t bytes);
  void clear() { line_.show(""); }

 private:
  using Clock = std::chrono::steady_clock;
  std::string verb_;
  ProgressLine line_;
  Clock::time_point start_ = Clock::now(), last_plain_ = start_;
  int64_t first_done_ = 0, first_bytes_ = 0;
  bool begun_ = false;
};

// "12%  [###.......]  34.5 MB  20.1 MB/s  1:02 left"; a rate or a time that is not known yet is left out.
std::string progress_text(int64_t done, int64_t total, int64_t bytes, double bytes_per_second, double seconds_left);

}  // namespace dz::cli
