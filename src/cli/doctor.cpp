// deltazero doctor: what this machine has, that every form gives the contract's bits on it, and what it can do at most.
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/stopwatch.h"
#include "base/thread_pool.h"
#include "cli/cli.h"
#include "kernels/cpu.h"
#include "kernels/peak.h"
#include "kernels/selftest.h"
#include "numerics/constants.h"

namespace dz::cli {
namespace {

using kernels::Isa;
using Json = nlohmann::ordered_json;

constexpr Isa kIsas[] = {Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16, Isa::kAmx};

// The CPUs that this process may run on, which containers and batch systems make fewer than the machine's.
int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

double memory_gib() { return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1024.0 * 1024.0 * 1024.0); }

std::string find_program(const std::string& name) {
  const char* list = std::getenv("PATH");
  std::string directories = list == nullptr ? "" : list;
  for (size_t begin = 0; begin < directories.size();) {
    const size_t end = std::min(directories.find(':', begin), directories.size());
    const std::string path = directories.substr(begin, end - begin) + "/" + name;
    if (access(path.c_str(), X_OK) == 0) return path;
    begin = end + 1;
  }
  return "";
}

// Milliseconds to make 4 KiB durable in `directory`, the median of nine: what a metrics line or a manifest costs. Empty when it cannot be written.
std::optional<double> fsync_milliseconds(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / fmt::format(".deltazero-doctor-{}", getpid());
  std::vector<double> times;
  try {
    File file = File::create(path);
    for (int i = 0; i < 9; ++i) {
      const Stopwatch watch;
      file.write(std::string(4096, 'x'));
      file.sync();
      times.push_back(1e3 * watch.seconds());
    }
    file.close();
  } catch (const Error&) {
    times.clear();
  }
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  if (times.empty()) return std::nullopt;
  std::nth_element(times.begin(), times.begin() + 4, times.end());
  return times[4];
}

struct FormReport {
  std::string name;
  kernels::SelfTestReport test;
};

std::vector<FormReport> test_forms(ThreadPool& pool) {
  std::vector<FormReport> reports;
  for (const Isa isa : kernels::available()) {
    reports.push_back({std::string(kernels::name_of(isa)), kernels::self_test(kernels::table_of(isa), kernels::SelfTestLength::kLong, &pool)});
  }
  return reports;
}

struct Peaks {
  double bf16_one = 0, bf16_all = 0, f32_one = 0, f32_all = 0, copy_one = 0, copy_all = 0;
};

Peaks measure_peaks(ThreadPool& one, ThreadPool& all) {
  const Isa isa = kernels::active().isa;
  constexpr double kMilliseconds = 100;
  return {.bf16_one = kernels::raw_peak_gflops(isa, DType::kBF16, one, kMilliseconds),
          .bf16_all = kernels::raw_peak_gflops(isa, DType::kBF16, all, kMilliseconds),
          .f32_one = kernels::raw_peak_gflops(isa, DType::kF32, one, kMilliseconds),
          .f32_all = kernels::raw_peak_gflops(isa, DType::kF32, all, kMilliseconds),
          .copy_one = kernels::copy_gbps(one),
          .copy_all = kernels::copy_gbps(all)};
}

struct Findings {
  int cores = 0;
  std::vector<FormReport> forms;
  std::string active;
  Peaks peaks;
  std::string directory;
  std::optional<double> fsync_ms;
};

Json to_json(const Findings& found) {
  Json json = {{"version", DZ_VERSION}, {"numerics", numerics::kNumericsId}};
  json["cpu"] = {{"name", kernels::cpu_name()}, {"cores", found.cores}, {"memory_gib", memory_gib()}};
  for (const Isa isa : kIsas) json["cpu"][std::string(kernels::name_of(isa))] = kernels::cpu_has(isa);
  json["active"] = found.active;
  json["forms"] = Json::array();
  for (const FormReport& form : found.forms) {
    json["forms"].push_back({{"name", form.name}, {"ok", form.test.ok()}, {"cases", form.test.cases}, {"difference", form.test.difference}});
  }
  const Peaks& peaks = found.peaks;
  json["peak_gflops"] = {{"bf16", {{"one", peaks.bf16_one}, {"all", peaks.bf16_all}}}, {"f32", {{"one", peaks.f32_one}, {"all", peaks.f32_all}}}};
  json["copy_gbps"] = {{"one", peaks.copy_one}, {"all", peaks.copy_all}};
  json["disk"] = {{"directory", found.directory}, {"fsync_ms", found.fsync_ms ? Json(*found.fsync_ms) : Json(nullptr)}};
  json["mpirun"] = find_program("mpirun");
  json["slurm"] = find_program("srun");
  return json;
}

std::string to_text(const Findings& found) {
  std::string text =
      fmt::format("cpu     {}, {} core{}, {:.0f} GiB     ", kernels::cpu_name(), found.cores, found.cores == 1 ? "" : "s", memory_gib());
  for (const Isa isa : kIsas) text += fmt::format(" {} {}", kernels::name_of(isa), kernels::cpu_has(isa) ? "yes" : "no");
  text += "\nforms  ";
  for (const FormReport& form : found.forms) text += fmt::format(" {} {}  ", form.name, form.test.ok() ? "ok" : "DIFFERS");
  text += fmt::format("({} cases each, memcmp with scalar; in use: {}, {})\n", found.forms.back().test.cases, found.active, numerics::kNumericsId);
  for (const FormReport& form : found.forms) {
    if (!form.test.ok()) text += fmt::format("        {} differs: {}; please report this with the cpu line\n", form.name, form.test.difference);
  }
  const Peaks& peaks = found.peaks;
  text += fmt::format("peak    bf16 {:.0f} a core, {:.0f} all   fp32 {:.0f}, {:.0f} GFLOP/s   copy {:.0f}, {:.0f} GB/s\n", peaks.bf16_one,
                      peaks.bf16_all, peaks.f32_one, peaks.f32_all, peaks.copy_one, peaks.copy_all);
  text += "disk    " + (found.fsync_ms ? fmt::format("fsync {:.1f} ms", *found.fsync_ms) : "not writable") + " in " + found.directory;
  text += fmt::format("   mpi {}   slurm {}\n", find_program("mpirun").empty() ? "not found" : "found",
                      find_program("srun").empty() ? "not found" : "found");
  return text;
}

void run_doctor(const std::string& directory, bool json) {
  Findings found;
  found.cores = usable_cores();
  ThreadPool one(1), all(found.cores);
  found.active = kernels::name_of(kernels::active().isa);
  found.forms = test_forms(all);
  found.peaks = measure_peaks(one, all);
  found.directory = directory;
  found.fsync_ms = fsync_milliseconds(directory);
  const std::string text = json ? to_json(found).dump(2) + "\n" : to_text(found);
  std::fwrite(text.data(), 1, text.size(), stdout);
  const bool ok = std::all_of(found.forms.begin(), found.forms.end(), [](const FormReport& form) { return form.test.ok(); });
  if (!ok) set_exit_code(static_cast<int>(ExitCode::kDifferent));
}

}  // namespace

void add_doctor(CLI::App& app) {
  struct Options {
    std::string directory = ".";
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("doctor", "check this machine: instruction sets, bits of every form, raw peaks, disk");
  verb->add_option("--dir", options->directory, "where runs will be written, for the disk test")->capture_default_str();
  verb->add_flag("--json", options->json, "one JSON object on standard output");
  verb->footer("exit 0: every form equals scalar; 1: one differs (training will not use it); 78: DZ_ISA names a form that is not available");
  verb->callback([options] { run_doctor(options->directory, options->json); });
}

}  // namespace dz::cli
