// Runs the program, or a line of shell, and keeps what it said.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace dz::test {

struct Outcome {
  int code = -1;     // of the exit; 1000 + the signal that ended it
  std::string text;  // standard output and standard error
};

inline Outcome run_shell(const std::string& command) {
  Outcome outcome;
  FILE* pipe = ::popen(("{ " + command + "; } 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer;
  while (const size_t size = std::fread(buffer.data(), 1, buffer.size(), pipe)) outcome.text.append(buffer.data(), size);
  const int status = ::pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  return outcome;
}

// `environment`: assignments in front of the program, as in "DZ_ISA=scalar".
inline Outcome deltazero(const std::string& arguments, const std::string& environment = "") {
  return run_shell(environment + " '" DZ_BINARY "' " + arguments);
}

}  // namespace dz::test
