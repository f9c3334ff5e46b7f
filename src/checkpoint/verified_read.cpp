// Reading a checkpoint's files without trusting them: each chunk is compared with the manifest before anybody sees it.
#include <algorithm>

#include "base/error.h"
#include "checkpoint/manifest.h"

namespace dz::checkpoint {
namespace {

[[noreturn]] void hash_mismatch(const fs::path& path, const std::string& where) {
  throw CheckpointError(path.string() + ": hash does not match manifest.json (" + where + ")");
}

std::span<std::byte> read_chunk(const File& opened, const ManifestFile& file, int64_t chunk, std::vector<std::byte>& buffer) {
  const int64_t offset = chunk * kManifestChunk;
  buffer.resize(static_cast<size_t>(std::min(kManifestChunk, file.bytes - offset)));
  opened.read_at(offset, buffer);
  if (xxh3_128(buffer).hex() != file.chunks[static_cast<size_t>(chunk)])
    hash_mismatch(opened.path(), "chunk " + std::to_string(chunk + 1) + " of " + std::to_string(file.chunks.size()));
  return buffer;
}

File open_part(const Checkpoint& checkpoint, const ManifestFile& file) {
  const fs::path path = checkpoint.path / file.name;
  File opened = File::open_read(path);
  if (opened.size() != file.bytes)
    throw CheckpointError(Complaint{.where = path.string(),
                                    .found = std::to_string(opened.size()) + " bytes",
                                    .expected = std::to_string(file.bytes),
                                    .hint = "the file was cut or changed after the save"});
  return opened;
}

}  // namespace

void read_verified(const Checkpoint& checkpoint, const ManifestFile& file, const std::function<void(int64_t, std::span<const std::byte>)>& use) {
  const File opened = open_part(checkpoint, file);
  std::vector<std::byte> buffer;
  Sha256 whole;
  for (int64_t chunk = 0; chunk < static_cast<int64_t>(file.chunks.size()); ++chunk) {
    const std::span<const std::byte> bytes = read_chunk(opened, file, chunk, buffer);
    whole.update(bytes);
    use(chunk * kManifestChunk, bytes);
  }
  if (whole.hex() != file.sha256) hash_mismatch(opened.path(), "SHA-256 of the file");
}

void verify_beginning(const Checkpoint& checkpoint, const ManifestFile& file, int64_t bytes) {
  const File opened = open_part(checkpoint, file);
  std::vector<std::byte> buffer;
  for (int64_t chunk = 0; chunk * kManifestChunk < std::min(bytes, file.bytes); ++chunk) read_chunk(opened, file, chunk, buffer);
}

void verify_files(const Checkpoint& checkpoint) {
  for (const ManifestFile& file : checkpoint.files) read_verified(checkpoint, file, [](int64_t, std::span<const std::byte>) {});
}

std::string read_side_file(const Checkpoint& checkpoint, std::string_view name) {
  std::string text;
  read_verified(checkpoint, manifest_file(checkpoint, name),
                [&](int64_t, std::span<const std::byte> bytes) { text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size()); });
  return text;
}

StateDigests read_digests(const Checkpoint& checkpoint) {
  const fs::path path = checkpoint.path / kDigestsName;
  StateDigests digests = parse_digests(path, read_side_file(checkpoint, kDigestsName));
  if (digests.parameters.total != checkpoint.parameters || digests.moments.total != checkpoint.moments || digests.trainer != checkpoint.trainer)
    throw CheckpointError(path.string() + ": the digests of the tensors do not combine to the digests of manifest.json");
  return digests;
}

}  // namespace dz::checkpoint
