// manifest.json, the marker of a complete checkpoint: written last, with the size and the hashes of every other file, and its own hash.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "checkpoint/store.h"

namespace dz::checkpoint {

inline constexpr std::string_view kManifestName = "manifest.json";
inline constexpr std::string_view kModelName = "model.safetensors";
inline constexpr std::string_view kMomentsName = "moments.safetensors";
inline constexpr std::string_view kTrainerName = "trainer.json";
inline constexpr std::string_view kDigestsName = "digests.json";

// The text of the manifest; equal checkpoints have equal manifests (no time, host or path in it).
std::string manifest_text(const Checkpoint& checkpoint);

// The manifest of `directory` from its text. CheckpointError: not JSON, a field missing or of the wrong type, any byte changed.
Checkpoint parse_manifest(const fs::path& directory, const std::string& text);

// Per-tensor digests as the text of digests.json, and back (CheckpointError naming `path`; totals are recomputed from the tensors).
std::string digests_text(const StateDigests& digests);
StateDigests parse_digests(const fs::path& path, const std::string& text);

// A name that can only be a file inside the directory.
bool is_plain_name(std::string_view name);

// The step of a directory called step-N.
std::optional<int64_t> step_of(std::string_view directory_name);

// A file of the checkpoint in pieces of kManifestChunk, each compared with the manifest before `use` sees it (offset, bytes); at the
// end the SHA-256 of the whole. CheckpointError names file and chunk.
void read_verified(const Checkpoint& checkpoint, const ManifestFile& file, const std::function<void(int64_t, std::span<const std::byte>)>& use);

// Compares only the chunks that hold the first `bytes` bytes.
void verify_beginning(const Checkpoint& checkpoint, const ManifestFile& file, int64_t bytes);

const ManifestFile& manifest_file(const Checkpoint& checkpoint, std::string_view name);  // CheckpointError when absent

}  // namespace dz::checkpoint
