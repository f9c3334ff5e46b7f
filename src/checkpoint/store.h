// The checkpoints of a run: CHECKPOINTS/step-N holds the state after N steps. At every instant there is one complete checkpoint that a
// resume will pick, and an incomplete one is never picked (docs/checkpoints.md states the promise and how it is tested).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/tensor.h"
#include "base/thread_pool.h"
#include "checkpoint/digest.h"

namespace dz::checkpoint {

// The state after `step` steps. The views must stay valid and unchanged while it is being saved.
struct Snapshot {
  int64_t step = 0;
  std::vector<TensorView> parameters;             // f32, Hugging Face names
  std::vector<TensorView> moments;                // f32, exp_avg.NAME and exp_avg_sq.NAME
  std::string trainer_json;                       // canonical: equal states have equal bytes
  std::map<std::string, std::string> side_files;  // file name -> contents: recipe.yaml, tokenizer.json
  std::optional<StateDigests> digests;            // computed by save() when absent
};

struct Saved {
  fs::path path;      // CHECKPOINTS/step-N
  int64_t bytes = 0;  // of all files
  StateDigests digests;
  std::vector<int64_t> removed;    // steps that retention removed
  std::vector<std::string> notes;  // what went wrong without harming the new checkpoint (an old one could not be removed)
};

// Writes a hidden temporary directory, every file synced and hashed while written, the manifest last; then one rename to step-N.
// Only then removes old complete checkpoints so that the newest `keep` stay (0: all). An existing step-N is replaced in one step.
//   DivergedError  a weight or moment is NaN or infinite: nothing is written
//   CreateError    the directory cannot be made
//   IoError        disk full, quota, I/O error; with the sizes needed and free; the temporary files are gone, older checkpoints whole
// Only checkpoints older than the new one are ever removed: a newer directory that a resume had to skip is left for a person to look at.
Saved save(const fs::path& checkpoints, const Snapshot& snapshot, int64_t keep, ThreadPool& pool);

struct ManifestFile {
  std::string name;
  int64_t bytes = 0;
  std::string sha256;               // of the whole file: what sha256sum prints
  std::vector<std::string> chunks;  // XXH3-128 of each kManifestChunk bytes: only to say where a damaged file is damaged
};

inline constexpr int64_t kManifestChunk = int64_t{4} << 20;

// A checkpoint whose manifest was read and whose files have the right sizes.
struct Checkpoint {
  fs::path path;
  int64_t step = 0;
  Digest128 parameters, moments, trainer;
  std::vector<ManifestFile> files;  // in byte order of names
  bool has(std::string_view file) const;
};

// Reads the manifest of one checkpoint directory (named step-N or anything else: a copy is a checkpoint too) and checks presence and
// sizes. CheckpointError says what is wrong: manifest missing or unreadable, a file missing or of another size, another step than the name says.
Checkpoint open_checkpoint(const fs::path& directory);

// Reads every byte and compares it with the hashes; CheckpointError names file and chunk.
void verify_files(const Checkpoint& checkpoint);

// One small file (trainer.json, recipe.yaml, tokenizer.json, digests.json), its hash verified. CheckpointError also when the checkpoint has none.
std::string read_side_file(const Checkpoint& checkpoint, std::string_view name);

// The per-tensor digests (digests.json).
StateDigests read_digests(const Checkpoint& checkpoint);

// Memory that a tensor is loaded into; f32.
struct TensorSlot {
  std::string name;
  Shape shape;
  float* data = nullptr;
};

// Fills parameters and moments by name, hashing every byte of the two files on the way. The sets of names must be equal.
//   CheckpointError  damaged file: the slots are partly filled
//   ConfigError      a checkpoint of another model: names, shapes or dtypes differ; the slots are untouched
void load(const Checkpoint& checkpoint, std::span<const TensorSlot> parameters, std::span<const TensorSlot> moments);

// The weights alone: for evaluation, and for a new run that starts from them.
void load_parameters(const Checkpoint& checkpoint, std::span<const TensorSlot> parameters);

struct Skipped {
  std::string name;  // of the directory
  std::string why;
};

struct Newest {
  std::optional<Checkpoint> checkpoint;  // the newest complete one, every byte verified; none when there is none
  std::vector<Skipped> skipped;          // newer ones, newest first, each with the reason
  int64_t count = 0;                     // step-* directories seen
};

// CHECKPOINTS may be missing. Reads only: safe beside a running trainer.
Newest find_newest(const fs::path& checkpoints);

// The name "step-N" of a checkpoint's directory, and the steps of the directories so called, complete or not, newest first.
std::string step_name(int64_t step);
std::vector<int64_t> list_steps(const fs::path& checkpoints);

// Steps whose manifest and sizes are right, newest first; contents are not read.
std::vector<int64_t> complete_steps(const fs::path& checkpoints);

// At the start of a trainer that holds the lock of the run: removes temporary directories of dead processes and finishes a
// replacement that was interrupted. Returns one line for each thing done, to be shown.
std::vector<std::string> clean_leftovers(const fs::path& checkpoints);

}  // namespace dz::checkpoint
