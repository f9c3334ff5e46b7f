#include "checkpoint/hashed_file.h"

#include <algorithm>

#include "checkpoint/fault.h"

namespace dz::checkpoint {

HashedFile::HashedFile(const fs::path& directory, std::string_view name) {
  entry_.name = name;
  fault_point(directory / name);
  file_ = File::create(directory / name);
  buffer_.reserve(static_cast<size_t>(kManifestChunk));
}

void HashedFile::write(std::span<const std::byte> bytes) {
  fill(bytes, [this] { flush(); });
}

void HashedFile::write_zeros_to_the_end(int64_t bytes) {
  const int64_t end = entry_.bytes + bytes;
  if (!buffer_.empty()) write_or_fault(file_, buffer_);
  const std::vector<std::byte> zeros(static_cast<size_t>(kManifestChunk));
  for (int64_t left = bytes; left > 0; left -= std::min(left, kManifestChunk))
    fill(std::span(zeros).first(static_cast<size_t>(std::min(left, kManifestChunk))), [this] { hash_chunk(); });
  if (!buffer_.empty()) hash_chunk();
  fault_point(file_.path());
  file_.truncate(end);
}

ManifestFile HashedFile::finish() {
  if (!buffer_.empty()) flush();
  fault_point(file_.path());
  file_.sync();
  fault_point(file_.path());
  file_.close();
  entry_.sha256 = whole_.hex();
  return std::move(entry_);
}

void HashedFile::fill(std::span<const std::byte> bytes, const std::function<void()>& chunk_full) {
  entry_.bytes += static_cast<int64_t>(bytes.size());
  while (!bytes.empty()) {
    const size_t count = std::min(bytes.size(), static_cast<size_t>(kManifestChunk) - buffer_.size());
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
    bytes = bytes.subspan(count);
    if (buffer_.size() == static_cast<size_t>(kManifestChunk)) chunk_full();
  }
}

void HashedFile::hash_chunk() {
  whole_.update(buffer_);
  entry_.chunks.push_back(xxh3_128(buffer_).hex());
  buffer_.clear();
}

void HashedFile::flush() {
  write_or_fault(file_, buffer_);
  hash_chunk();
}

ManifestFile write_text(const fs::path& directory, std::string_view name, std::string_view text) {
  HashedFile file(directory, name);
  file.write(std::as_bytes(std::span(text.data(), text.size())));
  return file.finish();
}

}  // namespace dz::checkpoint
