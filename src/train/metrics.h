// metrics.jsonl: one line a step, loss and norm also as hex floats, digests when they are due. The certificate chain of a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "checkpoint/digest.h"

namespace dz::train {

// What one virtual rank of the olmo-core divisor would report (train/divisor.h).
struct RankReport {
  float loss = 0, z_loss = 0;        // by its own divisor
  int64_t labels = 0, filtered = 0;  // targets; filtered instances
  int64_t instances = 0;
};

// Where the time of a step went.
struct PhaseSeconds {
  double data = 0;           // waiting for the batch
  double forward = 0;        // the layers
  double head = 0;           // logits, loss and their gradients
  double backward = 0;       // the layers, and joining the gradients of micro-batches
  double optimizer = 0;      // norm, clipping, update, cast of the new weights
  double communication = 0;  // with other ranks
  double digest = 0;         // certificates of the state
  double save = 0;           // the checkpoint before this step
};

struct StepReport {
  int64_t step = 0;
  float loss = 0;                             // mean cross entropy of the batch, by the divisor of the recipe
  float z_loss = 0;                           // with its multiplier
  float grad_norm = 0;                        // before clipping
  float loss_global = 0, loss_olmo_core = 0;  // by either divisor (train/divisor.h)
  int64_t labels = 0;                         // targets of the batch
  int64_t filtered = 0;                       // instances without a target because a filter took them
  int64_t instances = 0;
  std::vector<RankReport> ranks;  // empty unless the recipe has virtual ranks, at most kLoggedRanks of them
  double lr = 0;                  // that this step used
  int64_t adam_step = 0;          // updates done, this one included
  std::string fault;              // the DZ_FAULT that struck this step
  bool skipped = false;
  std::string skip_reason;
  int64_t tokens = 0;  // of the batch
  int64_t tokens_total = 0;
  double seconds = 0;
  PhaseSeconds phases;
  double mfu = 0;  // share of the raw peak
  Digest128 batch_digest;
  std::optional<checkpoint::StateDigests> digests;  // after this step
};

inline constexpr int64_t kLoggedRanks = 64;  // the lines of a run with more would be tens of kilobytes

// "0x1.34a2p+2"; "nan", "inf", "-inf".
std::string hex_float(float value);

std::string to_json_line(const StepReport& report);

// Appends lines, each with one write, so that a kill leaves at most one torn line: the last.
class MetricsLog {
 public:
  // Cuts the file back to the lines of steps up to `last_step` (a resume), or to nothing (0); other lines and a torn one go too.
  MetricsLog(const fs::path& path, int64_t last_step);
  void append(const StepReport& report);
  int64_t removed_lines() const { return removed_; }

 private:
  File file_;
  int64_t removed_ = 0;
};

}  // namespace dz::train
