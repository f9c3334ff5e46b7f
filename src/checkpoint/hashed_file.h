// A file of a checkpoint while it is being written: hashed, in pieces of one manifest chunk, each operation a fault point (fault.h).
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "checkpoint/store.h"

namespace dz::checkpoint {

class HashedFile {
 public:
  HashedFile(const fs::path& directory, std::string_view name);  // CreateError
  void write(std::span<const std::byte> bytes);                  // IoError
  // `bytes` zeros as a hole that takes no room on the disk. Only at the end of the file: finish() is all that may follow.
  void write_zeros_to_the_end(int64_t bytes);
  ManifestFile finish();  // synced and closed

 private:
  void fill(std::span<const std::byte> bytes, const std::function<void()>& chunk_full);
  void hash_chunk();
  void flush();

  File file_;
  ManifestFile entry_;
  Sha256 whole_;
  std::vector<std::byte> buffer_;
};

// A small file as a whole, synced.
ManifestFile write_text(const fs::path& directory, std::string_view name, std::string_view text);

}  // namespace dz::checkpoint
