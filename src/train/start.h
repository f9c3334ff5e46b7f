// Where a run begins: fresh weights, another model, its own newest checkpoint, or a fork of another run's.
#pragma once

#include <optional>
#include <string>

#include "checkpoint/store.h"
#include "train/trainer.h"

namespace dz::train {

struct Start {
  Identity identity;
  std::string parent_json;  // of a forked run: where it comes from; empty otherwise
  bool resumed = false;
  bool forked() const { return !parent_json.empty(); }
  bool save_now = false;  // a fork has its own first checkpoint before its first step
};

// Fills `state`. Says on `progress` what was taken and what was passed over, and why.
Start start_run(const TrainOptions& options, const TrainingData& data, const RunDirectory& directory, TrainState& state, ThreadPool& pool,
                Progress& progress);

// What save() writes for `state`.
checkpoint::Snapshot snapshot(const Config& config, const TrainingData& data, const Start& start, const TrainState& state);

}  // namespace dz::train
