#include "model/load.h"

#include "base/error.h"
#include "checkpoint/store.h"

namespace dz::model {
namespace {

constexpr const char* kConfig = "config.json";

}  // namespace

fs::path model_directory(const fs::path& path) {
  std::error_code ignored;
  if (fs::exists(path / kConfig, ignored)) return path;
  const fs::path checkpoints = path / "checkpoints";
  if (fs::is_directory(checkpoints, ignored)) {
    const checkpoint::Newest newest = checkpoint::find_newest(checkpoints);
    if (newest.checkpoint) return newest.checkpoint->path;
    throw InputError(Complaint{path.string(), "a run without a complete checkpoint", "checkpoints/step-N", "train it first"});
  }
  if (!fs::exists(path, ignored)) throw InputError(Complaint{path.string(), "no such directory", "a checkpoint, a run or a Hugging Face model", ""});
  throw InputError(Complaint{path.string(), "no config.json and no checkpoints", "a checkpoint, a run or a Hugging Face model", ""});
}

ModelConfig load_config(const fs::path& path) {
  const fs::path config_path = model_directory(path) / kConfig;
  return from_hf_json(read_file(config_path), config_path.string());
}

LoadedModel load_model(const fs::path& path) {
  const fs::path directory = model_directory(path);
  const ModelConfig config = load_config(directory);
  return {.directory = directory, .config = config, .parameters = load_parameters(directory, config)};
}

}  // namespace dz::model
