// deltazero doctor, as a process: its report, its exit codes, and what DZ_ISA does to every verb that computes.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "kernels/table.h"

namespace dz {
namespace {

struct Outcome {
  int exit_code = -1;
  std::string output;
};

Outcome run(const std::string& environment, const std::string& arguments) {
  const std::string command = environment + " " DZ_BINARY " " + arguments;
  Outcome outcome;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer{};
  while (const size_t size = fread(buffer.data(), 1, buffer.size(), pipe)) outcome.output.append(buffer.data(), size);
  const int status = pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

TEST(Doctor, ReportsEveryAvailableFormAsEqualToScalar) {
  const Outcome outcome = run("", "doctor --json --dir " + testing::TempDir());
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  const nlohmann::json report = nlohmann::json::parse(outcome.output);
  ASSERT_EQ(report["forms"].size(), kernels::available().size());
  for (const auto& form : report["forms"]) {
    EXPECT_TRUE(form["ok"]) << form.dump();
    EXPECT_GE(form["cases"].get<int>(), 60);
  }
  EXPECT_GT(report["peak_gflops"]["f32"]["all"].get<double>(), 0);
  EXPECT_TRUE(report["disk"]["fsync_ms"].is_number());
}

TEST(Doctor, UsesAForcedFormAndReportsAnUnwritableDirectory) {
  const Outcome outcome = run("DZ_ISA=scalar", "doctor --json --dir /proc/none");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  const nlohmann::json report = nlohmann::json::parse(outcome.output);
  EXPECT_EQ(report["active"], "scalar");
  EXPECT_TRUE(report["disk"]["fsync_ms"].is_null());
}

TEST(Doctor, AFormThatIsNotHereIsRefusedWithTheListOfThoseThatAre) {
  const Outcome unknown = run("DZ_ISA=sse9", "doctor 2>&1");
  EXPECT_EQ(unknown.exit_code, static_cast<int>(ExitCode::kConfig));
  EXPECT_NE(unknown.output.find("not available on this CPU"), std::string::npos) << unknown.output;
  EXPECT_NE(unknown.output.find("scalar"), std::string::npos) << unknown.output;
  if (!kernels::cpu_has(kernels::Isa::kAmx)) {
    EXPECT_EQ(run("DZ_ISA=amx", "doctor 2>&1").exit_code, static_cast<int>(ExitCode::kConfig));
  }
}

}  // namespace
}  // namespace dz
