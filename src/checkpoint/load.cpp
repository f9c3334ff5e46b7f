#include <algorithm>
#include <cstring>
#include <map>

#include "base/check.h"
#include "base/error.h"
#include "checkpoint/manifest.h"
#include "checkpoint/safetensors.h"

namespace dz::checkpoint {
namespace {

[[noreturn]] void another_model(const fs::path& path, const std::string& found, const std::string& expected) {
  throw ConfigError(Complaint{.where = path.string(),
                              .found = found,
                              .expected = expected,
                              .hint = "this is a checkpoint of another model; take its own recipe, or another run directory"});
}

struct Target {
  const StoredTensor* stored;
  float* data;
};

// Pairs tensors with slots by name, never by position: order is nothing that a file promises.
std::vector<Target> match(const fs::path& path, const std::vector<StoredTensor>& tensors, std::span<const TensorSlot> slots) {
  std::map<std::string_view, const TensorSlot*> wanted;
  for (const TensorSlot& slot : slots) DZ_CHECK(wanted.emplace(slot.name, &slot).second, "two slots called", slot.name);
  std::vector<Target> targets;
  for (const StoredTensor& tensor : tensors) {
    const auto slot = wanted.find(tensor.name);
    if (slot == wanted.end()) another_model(path, "tensor \"" + tensor.name + "\"", "no tensor of this name in the model");
    if (tensor.dtype != "F32") another_model(path, "tensor \"" + tensor.name + "\" of dtype " + tensor.dtype, "F32");
    if (tensor.shape != slot->second->shape)
      another_model(path, "tensor \"" + tensor.name + "\" of shape " + shape_text(tensor.shape), shape_text(slot->second->shape));
    targets.push_back({&tensor, slot->second->data});
    wanted.erase(slot);
  }
  if (!wanted.empty())
    another_model(path, std::to_string(tensors.size()) + " tensors",
                  std::to_string(slots.size()) + "; \"" + std::string(wanted.begin()->first) + "\" is missing");
  return targets;
}

// One safetensors file of a checkpoint whose header has been read and matched; the data is still to come.
struct Part {
  const ManifestFile* file;
  SafetensorsHeader header;
  std::vector<Target> targets;  // in file order
};

Part open_part(const Checkpoint& checkpoint, std::string_view name, std::span<const TensorSlot> slots) {
  const fs::path path = checkpoint.path / name;
  Part part{&manifest_file(checkpoint, name), {}, {}};
  const File file = File::open_read(path);
  // The hash before the contents: damage must not look like another model.
  uint64_t length = 0;
  verify_beginning(checkpoint, *part.file, 8);
  file.read_at(0, std::as_writable_bytes(std::span(&length, 1)));
  verify_beginning(checkpoint, *part.file, static_cast<int64_t>(std::min(length, static_cast<uint64_t>(part.file->bytes))) + 8);
  part.header = read_safetensors_header(file);
  part.targets = match(path, part.header.tensors, slots);
  return part;
}

// Tensors lie in the file one after the other, so a single forward pass hands each chunk to the tensors that it overlaps.
void fill(const Checkpoint& checkpoint, const Part& part) {
  size_t next = 0;
  read_verified(checkpoint, *part.file, [&](int64_t offset, std::span<const std::byte> bytes) {
    const int64_t end = offset + static_cast<int64_t>(bytes.size());
    while (next < part.targets.size()) {
      const StoredTensor& tensor = *part.targets[next].stored;
      const int64_t from = std::max(offset, tensor.offset), to = std::min(end, tensor.offset + tensor.bytes);
      if (from < to)
        std::memcpy(reinterpret_cast<std::byte*>(part.targets[next].data) + (from - tensor.offset), bytes.data() + (from - offset),
                    static_cast<size_t>(to - from));
      if (tensor.offset + tensor.bytes > end) break;
      ++next;
    }
  });
}

// The memory that was filled against the digest that the saving process computed from its own memory.
void compare_digest(const Checkpoint& checkpoint, std::span<const TensorSlot> slots, const Digest128& expected, std::string_view name) {
  ThreadPool pool(1);
  std::vector<TensorView> views;
  for (const TensorSlot& slot : slots) views.push_back({slot.name, DType::kF32, slot.shape, slot.data});
  const Digest128 found = digest_tensors(views, pool).total;
  if (found != expected)
    throw CheckpointError(Complaint{.where = (checkpoint.path / name).string(),
                                    .found = "digest " + found.hex() + " after loading",
                                    .expected = expected.hex() + " as manifest.json says",
                                    .hint = ""});
}

}  // namespace

void load(const Checkpoint& checkpoint, std::span<const TensorSlot> parameters, std::span<const TensorSlot> moments) {
  // Both headers before any byte is filled in: a checkpoint of another model leaves the caller's memory as it was.
  const Part model = open_part(checkpoint, kModelName, parameters);
  const Part state = open_part(checkpoint, kMomentsName, moments);
  fill(checkpoint, model);
  fill(checkpoint, state);
  compare_digest(checkpoint, parameters, checkpoint.parameters, kModelName);
  compare_digest(checkpoint, moments, checkpoint.moments, kMomentsName);
}

void load_parameters(const Checkpoint& checkpoint, std::span<const TensorSlot> parameters) {
  fill(checkpoint, open_part(checkpoint, kModelName, parameters));
  compare_digest(checkpoint, parameters, checkpoint.parameters, kModelName);
}

}  // namespace dz::checkpoint
