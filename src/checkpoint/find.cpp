// Which checkpoint a resume takes: the newest that is complete, every byte verified, with the reasons against each newer one.
#include <algorithm>

#include "base/error.h"
#include "checkpoint/manifest.h"

namespace dz::checkpoint {
namespace {

[[noreturn]] void incomplete(const fs::path& path, const std::string& what) { throw CheckpointError(path.string() + ": " + what); }

void check_size(const Checkpoint& checkpoint, const ManifestFile& file) {
  const fs::path path = checkpoint.path / file.name;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) incomplete(path, "missing");
  if (!fs::is_regular_file(status)) incomplete(path, "not a regular file");
  const auto bytes = static_cast<int64_t>(fs::file_size(path, error));
  if (error) incomplete(path, "its size cannot be read: " + error.message());
  if (bytes != file.bytes)
    throw CheckpointError(Complaint{.where = path.string(),
                                    .found = std::to_string(bytes) + " bytes",
                                    .expected = std::to_string(file.bytes),
                                    .hint = "the file was cut or changed after the save"});
}

}  // namespace

std::vector<int64_t> list_steps(const fs::path& checkpoints) {
  std::vector<int64_t> steps;
  std::error_code error;
  for (fs::directory_iterator entry(checkpoints, error), end; !error && entry != end; entry.increment(error))
    if (const auto step = step_of(entry->path().filename().string())) steps.push_back(*step);
  if (error && error != std::errc::no_such_file_or_directory) throw IoError(checkpoints.string() + ": cannot list the directory: " + error.message());
  std::sort(steps.begin(), steps.end(), std::greater<>());
  return steps;
}

bool Checkpoint::has(std::string_view file) const {
  return std::any_of(files.begin(), files.end(), [&](const ManifestFile& entry) { return entry.name == file; });
}

Checkpoint open_checkpoint(const fs::path& directory) {
  const fs::path path = directory / kManifestName;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) incomplete(path, "manifest missing, the save was interrupted");
  Checkpoint checkpoint = parse_manifest(directory, read_file(path));
  const auto named = step_of((directory.has_filename() ? directory : directory.parent_path()).filename().string());
  if (named && *named != checkpoint.step)
    throw CheckpointError(Complaint{.where = path.string(),
                                    .found = "step " + std::to_string(checkpoint.step),
                                    .expected = std::to_string(*named) + ", as the directory says",
                                    .hint = "a checkpoint was renamed or copied over another"});
  for (const std::string_view name : {kModelName, kMomentsName, kTrainerName, kDigestsName}) manifest_file(checkpoint, name);
  for (const ManifestFile& file : checkpoint.files) check_size(checkpoint, file);
  return checkpoint;
}

Newest find_newest(const fs::path& checkpoints) {
  Newest newest;
  const std::vector<int64_t> steps = list_steps(checkpoints);
  newest.count = static_cast<int64_t>(steps.size());
  for (const int64_t step : steps) {
    try {
      Checkpoint candidate = open_checkpoint(checkpoints / step_name(step));
      verify_files(candidate);
      newest.checkpoint = std::move(candidate);
      break;
    } catch (const Error& error) {  // also a file that cannot be opened or read: an older checkpoint may still be whole
      newest.skipped.push_back({step_name(step), error.what()});
    }
  }
  return newest;
}

std::vector<int64_t> complete_steps(const fs::path& checkpoints) {
  std::vector<int64_t> complete;
  for (const int64_t step : list_steps(checkpoints)) {
    try {
      open_checkpoint(checkpoints / step_name(step));
      complete.push_back(step);
    } catch (const Error&) {  // not complete: what this function is asked
    }
  }
  return complete;
}

}  // namespace dz::checkpoint
