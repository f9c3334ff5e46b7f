// Opens a model wherever it lies: a native checkpoint, the newest checkpoint of a run, or a Hugging Face directory.
#pragma once

#include "base/file.h"
#include "model/config.h"
#include "model/parameters.h"

namespace dz::model {

struct LoadedModel {
  fs::path directory;  // that holds the weights; tokenizer.json beside them when it is known
  ModelConfig config;
  Parameters parameters;
};

// The directory of the weights for `path`: itself, or the newest complete RUN/checkpoints/step-N. InputError when neither is there.
fs::path model_directory(const fs::path& path);

// config.json of the directory of the weights.
ModelConfig load_config(const fs::path& path);

// config.json (Hugging Face form; checkpoints have one too) and the safetensors files of the directory.
LoadedModel load_model(const fs::path& path);

}  // namespace dz::model
