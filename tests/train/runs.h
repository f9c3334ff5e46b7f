// Runs of the contract model for tests: in this process, or as the program, which can then be killed.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "train/trainer.h"

namespace dz::train::test {

class TempDir {
 public:
  TempDir() {
    // In memory where there is such a file system: the time of many saves would all be fsync.
    const fs::path memory = "/dev/shm";
    std::string pattern = ((::access(memory.c_str(), W_OK | X_OK) == 0 ? memory : fs::temp_directory_path()) / "dz-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempDir() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  fs::path operator/(const std::string& name) const { return path_ / name; }

 private:
  fs::path path_;
};

inline const fs::path& contract_config() {
  static const fs::path path = fs::path(DZ_SOURCE) / "configs" / "contract.yaml";
  return path;
}

inline Outcome train_contract(const fs::path& run, std::vector<std::string> sets = {}, int64_t stop_after = -1) {
  sets.push_back("run.dir=" + run.string());
  TrainOptions options{.config = load_config(contract_config(), sets), .stop_after = stop_after};
  struct Quiet {
    Quiet() { testing::internal::CaptureStdout(); }
    ~Quiet() { testing::internal::GetCapturedStdout(); }
  } quiet;
  return train(std::move(options), {});
}

struct Recorded {
  std::string parameters, moments, trainer;
  friend bool operator==(const Recorded&, const Recorded&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Recorded& r) { return out << r.parameters << " " << r.moments << " " << r.trainer; }
};

inline std::vector<nlohmann::json> metrics(const fs::path& run) {
  std::vector<nlohmann::json> lines;
  std::istringstream in(read_file(run / "metrics.jsonl"));
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

inline Recorded digest_at(const fs::path& run, int64_t step) {
  for (const nlohmann::json& line : metrics(run)) {
    if (line.at("step") == step && line.contains("digest"))
      return {line["digest"]["parameters"], line["digest"]["moments"], line["digest"]["trainer"]};
  }
  return {};
}

// What every machine must give: tests/golden/contract/digests.json.
inline Recorded recorded(const std::string& dtype, int64_t step) {
  const auto all = nlohmann::json::parse(read_file(fs::path(DZ_GOLDEN) / "contract" / "digests.json"));
  const auto& one = all.at(dtype).at(std::to_string(step));
  return {one.at("parameters"), one.at("moments"), one.at("trainer")};
}

// Starts the program with its output thrown away; its process id.
inline pid_t start(const std::vector<std::string>& arguments) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  std::vector<char*> argv{const_cast<char*>(DZ_BINARY)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  if (std::freopen("/dev/null", "w", stdout) == nullptr || std::freopen("/dev/null", "w", stderr) == nullptr) ::_exit(126);
  ::execv(DZ_BINARY, argv.data());
  ::_exit(127);
}

// The exit code, or 1000 + the signal that ended it.
inline int wait_for(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

}  // namespace dz::train::test
