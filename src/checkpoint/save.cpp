// Saving: everything into a hidden directory, hashed while written, synced, then one rename. Every operation that can fail passes
// through fault.h, so that the tests can stop here and there and look at what is left.
#include <algorithm>

#include "base/check.h"
#include "base/error.h"
#include "checkpoint/directories.h"
#include "checkpoint/hashed_file.h"
#include "checkpoint/manifest.h"
#include "checkpoint/safetensors.h"

namespace dz::checkpoint {
namespace {

ManifestFile write_tensors(const fs::path& directory, std::string_view name, std::span<const TensorView> tensors) {
  HashedFile file(directory, name);
  write_safetensors(tensors, kTorchFormat, [&](std::span<const std::byte> bytes) { file.write(bytes); });
  return file.finish();
}

void refuse_non_finite(const Snapshot& snapshot, std::span<const TensorView> tensors, ThreadPool& pool) {
  const auto bad = find_non_finite(tensors, pool);
  if (!bad) return;
  throw DivergedError(
      Complaint{.where = "checkpoint of step " + std::to_string(snapshot.step) + ": " + bad->name + ", element " + std::to_string(bad->element),
                .found = std::to_string(bad->value),
                .expected = "finite numbers",
                .hint = "nothing was written; the last good checkpoint is kept"});
}

int64_t data_bytes(const Snapshot& snapshot) {
  size_t bytes = 0;
  for (const auto* list : {&snapshot.parameters, &snapshot.moments})
    for (const TensorView& tensor : *list) bytes += tensor.bytes();
  return static_cast<int64_t>(bytes);
}

// All files but the manifest, in byte order of names; then the manifest.
int64_t write_all(const fs::path& directory, const Snapshot& snapshot, const StateDigests& digests) {
  Checkpoint checkpoint;
  checkpoint.step = snapshot.step;
  checkpoint.parameters = digests.parameters.total;
  checkpoint.moments = digests.moments.total;
  checkpoint.trainer = digests.trainer;
  std::vector<ManifestFile>& files = checkpoint.files;
  files.push_back(write_tensors(directory, kModelName, snapshot.parameters));
  files.push_back(write_tensors(directory, kMomentsName, snapshot.moments));
  files.push_back(write_text(directory, kTrainerName, snapshot.trainer_json));
  files.push_back(write_text(directory, kDigestsName, digests_text(digests)));
  for (const auto& [name, text] : snapshot.side_files) {
    DZ_CHECK(is_plain_name(name) && name != kManifestName && !checkpoint.has(name), "side file", name);
    files.push_back(write_text(directory, name, text));
  }
  std::sort(files.begin(), files.end(), [](const ManifestFile& a, const ManifestFile& b) { return a.name < b.name; });
  int64_t bytes = 0;
  for (const ManifestFile& file : files) bytes += file.bytes;
  return bytes + write_text(directory, kManifestName, manifest_text(checkpoint)).bytes;
}

[[noreturn]] void save_failed(const fs::path& checkpoints, const Snapshot& snapshot, const Error& cause) {
  std::error_code error;
  const fs::space_info space = fs::space(checkpoints, error);
  std::string text = "saving step " + std::to_string(snapshot.step) + " failed: " + cause.what() + "\n  needed " +
                     std::to_string(data_bytes(snapshot)) + " bytes and a little more";
  if (!error) text += ", free now " + std::to_string(space.available);
  const std::vector<int64_t> complete = complete_steps(checkpoints);
  text += "; the unfinished files were removed, " +
          (complete.empty() ? "there is no older checkpoint" : "the newest complete checkpoint is " + step_name(complete.front()));
  throw IoError(text);
}

// Older complete checkpoints beyond the newest keep - 1 of them go; the one just saved is the first that is kept.
void apply_retention(const fs::path& checkpoints, int64_t step, int64_t keep, Saved& saved) {
  if (keep <= 0) return;
  int64_t kept = 1;
  try {
    for (const int64_t other : complete_steps(checkpoints)) {
      if (other >= step || kept++ < keep) continue;
      remove_checkpoint(checkpoints / step_name(other));
      saved.removed.push_back(other);
    }
  } catch (const Error& error) {  // the new checkpoint is safe: a disk that fills up later will say so
    saved.notes.push_back(std::string("an old checkpoint could not be removed: ") + error.what());
  }
}

}  // namespace

Saved save(const fs::path& checkpoints, const Snapshot& snapshot, int64_t keep, ThreadPool& pool) {
  DZ_CHECK(snapshot.step >= 0, "step", snapshot.step);
  refuse_non_finite(snapshot, snapshot.parameters, pool);
  refuse_non_finite(snapshot, snapshot.moments, pool);
  Saved saved;
  saved.path = checkpoints / step_name(snapshot.step);
  saved.digests = snapshot.digests ? *snapshot.digests
                                   : StateDigests{digest_tensors(snapshot.parameters, pool), digest_tensors(snapshot.moments, pool),
                                                  digest_text(snapshot.trainer_json)};
  try {
    write_directory(saved.path, [&](const fs::path& directory) { saved.bytes = write_all(directory, snapshot, saved.digests); });
  } catch (const IoError& error) {
    save_failed(checkpoints, snapshot, error);
  }
  apply_retention(checkpoints, snapshot.step, keep, saved);
  return saved;
}

}  // namespace dz::checkpoint
