// What the verbs that read text have in common: --input [NAME=]PATH, and how they report what was read.
#pragma once

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

// Lines on stderr about text that was left out or changed: skipped files, empty documents, ill-formed UTF-8.
void warn_about(const std::string& name, const text::ExtractCounts& counts);

int default_threads();

// A line on stderr that replaces itself, only on a terminal.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();  // clears the line
  void show(const std::string& line);

 private:
  bool terminal_;
  bool shown_ = false;
};

}  // namespace dz::cli
