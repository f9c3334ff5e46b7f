#include "cli/corpus_options.h"

#include <unistd.h>

#include <algorithm>
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
  const auto line = [&](int64_t count, const char* what) {
    if (count > 0) std::fprintf(stderr, "note: %s: %lld %s\n", name.c_str(), static_cast<long long>(count), what);
  };
  line(counts.skipped_files, "files skipped: not txt, md, rst, pod, html or jsonl");
  line(counts.empty_documents, "empty documents dropped");
  line(counts.replaced, "ill-formed UTF-8 sequences replaced by U+FFFD");
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

}  // namespace dz::cli
