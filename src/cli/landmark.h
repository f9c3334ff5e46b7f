// What a run evaluates on the way: held-out loss by source and a sample of text. It never touches the state of training.
#pragma once

#include "train/trainer.h"

namespace dz::cli {

// A train::LandmarkHook: writes loss.json and sample.txt into `directory`.
void write_landmark(const train::Config& config, const train::TrainingData& data, const train::TrainState& state, const fs::path& directory,
                    ThreadPool& pool, train::Progress& progress);

}  // namespace dz::cli
