// Many files read at random by many threads with few descriptors: a file is opened when it is read and may be closed again when others are.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "base/file.h"

namespace dz::data {

class OpenFiles {
 public:
  static constexpr size_t kMost = 256;  // well below the usual limit of 1,024 descriptors

  // Adds a file that has been looked at; its size must stay what it is.
  void add(fs::path path, int64_t bytes);
  size_t size() const { return paths_.size(); }
  const fs::path& path(size_t index) const { return paths_[index]; }
  int64_t bytes(size_t index) const { return bytes_[index]; }

  // Fills `out` from byte `offset`. DataError naming path, byte and cause: it cannot be opened any more, is shorter, or has another size.
  void read(size_t index, int64_t offset, std::span<std::byte> out) const;

 private:
  std::shared_ptr<const File> open(size_t index, int64_t offset) const;

  std::vector<fs::path> paths_;
  std::vector<int64_t> bytes_;
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<const File>> open_;  // by index; null: closed
  mutable std::deque<size_t> order_;                       // of opening
};

}  // namespace dz::data
