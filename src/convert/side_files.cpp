#include "convert/side_files.h"

#include <algorithm>
#include <array>
#include <system_error>

#include "base/error.h"

namespace dz::convert {
namespace {

constexpr std::array<std::string_view, 13> kWeights = {".safetensors", ".bin",  ".pt",     ".pth",    ".ckpt", ".gguf",      ".h5",
                                                       ".msgpack",     ".onnx", ".distcp", ".tflite", ".npz",  ".index.json"};

bool inside(const fs::path& path, const fs::path& directory) {
  const auto [end, ignored] = std::ranges::mismatch(directory, path);
  return end == directory.end();
}

// Whether a link leads to a file of the same model.
bool stays_here(const fs::path& link, const fs::path& directory) {
  std::error_code error;
  const fs::path target = fs::canonical(link, error);
  if (error) return false;
  const fs::path here = fs::canonical(directory, error);
  if (error) return false;
  // models--NAME/snapshots/REVISION/FILE -> ../../blobs/HASH
  const bool is_cache = here.parent_path().filename() == "snapshots";
  return inside(target, here) || (is_cache && inside(target, here.parent_path().parent_path() / "blobs"));
}

}  // namespace

bool is_weights(std::string_view name) {
  return std::ranges::any_of(kWeights, [&](std::string_view ending) { return name.ends_with(ending); });
}

SideFiles find_side_files(const fs::path& directory) {
  SideFiles found;
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) entries.push_back(*entry);
  if (error) throw IoError(directory.string() + ": cannot list the directory: " + error.message());
  std::ranges::sort(entries);
  const auto leave_out = [&](const std::string& name, const std::string& why) { found.notes.push_back(name + " is left out: " + why); };
  for (const fs::directory_entry& entry : entries) {
    const std::string name = entry.path().filename().string();
    std::error_code ignored;
    if (name == "config.json" || name.starts_with('.') || is_weights(name) || entry.is_directory(ignored)) continue;
    if (entry.is_symlink(ignored) && !stays_here(entry.path(), directory)) {
      leave_out(name, "a link that leads out of the directory");
    } else if (!entry.is_regular_file(ignored)) {
      leave_out(name, "not a regular file");
    } else if (const auto bytes = entry.file_size(ignored); ignored || bytes > static_cast<uint64_t>(kMaxSideFile)) {
      leave_out(name, "more than " + std::to_string(kMaxSideFile) + " bytes");
    } else if (found.names.size() == kMaxSideFiles) {
      leave_out(name, "more than " + std::to_string(kMaxSideFiles) + " files");
    } else {
      found.names.push_back(name);
    }
  }
  return found;
}

}  // namespace dz::convert
