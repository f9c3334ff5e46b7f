// The trajectories that OLMo-core computed (tests/golden/training/README.md), and runs of the program on the same data.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "train/runs.h"

namespace dz::train::test {

using Json = nlohmann::json;

inline std::string training_golden(const std::string& name) { return std::string(DZ_GOLDEN "/training/") + name; }

inline const Json& trajectories() {
  static const Json all = Json::parse(std::ifstream(training_golden("trajectories.json")));
  return all;
}
inline const Json& golden_run(const std::string& name) { return trajectories().at("runs").at(name); }

inline double parse_hex(const Json& text) { return std::strtod(text.get_ref<const std::string&>().c_str(), nullptr); }
// A list in which one value stands for all steps may be that one value, and an empty one is that of the base run.
inline double golden_value(const std::string& run, const char* key, size_t row) {
  const Json* list = &golden_run(run).at("float32").at(key);
  if (list->empty()) list = &golden_run("base").at("float32").at(key);
  return parse_hex(list->size() == 1 ? list->front() : list->at(row));
}

// Measured: float32 OLMo-core against float64, worst step of all runs: ce 9.9e-7, z 5.4e-11, norm 3.8e-6 at a norm of about 2; another shape
// and rate moved float32 against float32 by 1.4e-6, 1.3e-10 and 3.3e-5 (README of the goldens). The wrong variants miss by a thousand times.
inline constexpr double kLossLimit = 5e-6, kZLimit = 5e-10, kNormLimit = 1e-4;  // the last relative

// Worst step of two series.
struct Drift {
  double ce = 0, z = 0, norm = 0, relative_norm = 0;
  bool within() const { return ce <= kLossLimit && z <= kZLimit && relative_norm <= kNormLimit; }
};

inline double worst(double& most, double a, double b) {
  const bool both_nan = std::isnan(a) && std::isnan(b);
  const double gap = both_nan ? 0 : std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::infinity() : std::abs(a - b);
  most = std::max(most, gap);
  return gap;
}

inline double number_of(const Json& value) { return value.is_null() ? std::nan("") : value.get<double>(); }

// A run's lines of metrics.jsonl against one series of a golden: "float32" or "float64".
inline Drift drift_from(const std::vector<Json>& lines, const std::string& run, const std::string& series) {
  const Json& golden = golden_run(run).at(series);
  Drift drift;
  for (size_t i = 0; i < lines.size(); ++i) {
    worst(drift.ce, number_of(lines[i].at("loss")), parse_hex(golden.at("ce_loss").at(i)));
    // In the float32 rows of a run on ranks z_loss is the rank's own.
    const bool own = series == "float32" && lines[i].contains("ranks");
    worst(drift.z, number_of(own ? lines[i].at("ranks").at("z_loss").at(0) : lines[i].at("z_loss")), parse_hex(golden.at("z_loss").at(i)));
    const double norm = parse_hex(golden.at("grad_norm").at(i));
    const double gap = worst(drift.norm, number_of(lines[i].at("grad_norm")), norm);
    drift.relative_norm = std::max(drift.relative_norm, gap == 0 ? 0 : gap / std::abs(norm));
  }
  return drift;
}

struct RunFiles {
  std::string tokens = training_golden("tokens.npy"), label_mask;
};

// The recipe of the goldens (config.json there) as a config file of ours, to be changed with --set.
inline fs::path write_trajectory_config(const TempDir& temp, const RunFiles& files = {}) {
  const std::string masks = files.label_mask.empty() ? "" : fmt::format("\n    label_masks: ['{}']", files.label_mask);
  const fs::path path = temp / "trajectory.yaml";
  write_file_atomic(path, fmt::format(R"(recipe:
  steps: 60
  batch: 8
  dtype: fp32
  init: {}
  data:
    files: ['{}']{}
    tokens: {{vocab_size: 512, eos_id: 511, pad_id: 510}}
    sequence_length: 64
    dtype: uint16
    documents: none
    seed: 34521
    order: olmo-core
  model: {{family: olmo3, d_model: 64, n_layers: 4, n_heads: 4, d_ff: 192, vocab_size: 512, window: 16, full_every: 4}}
  optimizer: {{lr: 0.001}}
  schedule: {{name: cosine, warmup: 10, alpha_f: 0.1}}
  loss: {{z_loss: 0.00001}}
topology: {{threads: 1, micro_batch: 4, loader_threads: 0}}
run: {{dir: run, checkpoint_every: 0, log_every: 60}}
)",
                                      training_golden("init.safetensors"), files.tokens, masks));
  return path;
}

// Trains in this process; the lines of metrics.jsonl.
inline std::vector<Json> train_trajectory(const fs::path& config, const fs::path& run, std::vector<std::string> sets, int64_t stop_after = -1) {
  sets.push_back("run.dir=" + run.string());
  testing::internal::CaptureStdout();
  train({.config = load_config(config, sets), .stop_after = stop_after}, {});
  testing::internal::GetCapturedStdout();
  return metrics(run);
}

}  // namespace dz::train::test
