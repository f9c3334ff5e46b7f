// The trainer: opens data and run directory, resumes or starts, steps, certifies, saves, stops.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/thread_pool.h"
#include "train/config.h"
#include "train/progress.h"
#include "train/run_directory.h"
#include "train/step.h"
#include "train/training_data.h"

namespace dz::train {

struct TrainOptions {
  Config config;
  int64_t stop_after = -1;     // absolute step; save and leave the schedule as it is
  bool fresh = false;          // move an old run aside
  fs::path fork;               // start a new run from this checkpoint under the config's recipe
  bool override_data = false;  // go on with other data: skips the comparison of its identity, and nothing else
};

// Called at the steps of run.landmarks, state unchanged: writes its results into `directory` (not yet there).
using LandmarkHook = std::function<void(const Config& config, const TrainingData& data, const TrainState& state, const fs::path& directory,
                                        ThreadPool& pool, Progress& progress)>;

enum class Outcome : uint8_t { kDone, kStoppedBySignal };

// ConfigError: recipe or data that do not match the run, each difference named; DivergedError: too many skipped steps in a row.
Outcome train(TrainOptions options, const LandmarkHook& landmark);

}  // namespace dz::train
