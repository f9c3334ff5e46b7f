// The directories that a save makes and removes. Names beside step-N, hidden so that nobody takes them for checkpoints:
//   .step-N.tmp-PID   being written     .step-N.old-PID   was step-N, is being replaced     .step-N.del-PID   being removed
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"

namespace dz::checkpoint {

// A new, empty temporary directory, locked (flock) as long as this object lives: a lock dies with its process, so whoever can take it
// knows that the directory is nobody's. Removed with all it holds on destruction unless it has been published.
class TemporaryDirectory {
 public:
  TemporaryDirectory(const fs::path& checkpoints, int64_t step);  // CreateError, IoError
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const fs::path& path() const { return path_; }
  // Syncs, renames to `target` and syncs the parent; what was there before is removed after that. IoError.
  void publish(const fs::path& target);

 private:
  void replace(const fs::path& target);
  fs::path path_;
  int lock_ = -1;
  bool published_ = false;
};

// Renames `directory` to a hidden name, then removes it: what is left of an interrupted removal is never taken for a checkpoint.
void remove_checkpoint(const fs::path& directory);

}  // namespace dz::checkpoint
