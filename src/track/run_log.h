// What a run directory says about itself, read without trusting it: a run that is still going has a torn last line, a run that was
// killed may lack anything. Steps come from metrics.jsonl, held-out losses and samples from landmarks/step-N.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"

namespace dz::track {

// One line of metrics.jsonl. A number that was null, missing or not finite is NaN.
struct StepRow {
  int64_t step = 0;
  int64_t tokens_total = 0;
  double loss = 0, z_loss = 0, grad_norm = 0, lr = 0;
  double seconds = 0, tokens_per_second = 0, mfu = 0;  // mfu: share of the peak, 0 to 1
  bool skipped = false;
};

struct Skip {
  int64_t step = 0;
  double loss = 0, grad_norm = 0;
  std::string reason;
};

// The proof of one step; the state digests are there only when they were due.
struct Certificate {
  int64_t step = 0;
  std::string batch, loss_hex, grad_norm_hex;
  std::string parameters, moments, trainer;
};

struct SourceLoss {
  std::string name;
  int64_t tokens = 0;
  double loss = 0, perplexity = 0;
};

struct Landmark {
  int64_t step = 0;
  std::string split;  // "held-out", "train"; empty when there is no loss.json
  std::vector<SourceLoss> sources;
  SourceLoss total;
  std::string sample;  // sample.txt as it is: any bytes
};

struct RunLog {
  std::string name;            // of the directory
  std::vector<StepRow> steps;  // ascending; a step that was written twice counts once, the later line
  std::vector<Skip> skips;
  std::vector<Certificate> certificates;  // of the steps whose state digest was due, and of the last step
  std::vector<Landmark> landmarks;        // ascending
  std::vector<std::string> warnings;      // what could not be read, in words
};

// InputError when `run` is no directory, has no metrics.jsonl or no finished step. Damage elsewhere becomes a warning.
RunLog read_run(const fs::path& run);

}  // namespace dz::track
