// The directories that a save or a conversion makes and removes. Names beside TARGET (step-N), hidden so that nobody takes them for checkpoints:
//   .TARGET.tmp-PID   being written     .TARGET.old-PID   was TARGET, is being replaced     .TARGET.del-PID   being removed
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/file.h"

namespace dz::checkpoint {

// A new, empty temporary directory, locked (flock) as long as this object lives: a lock dies with its process, so whoever can take it
// knows that the directory is nobody's. Removed with all it holds on destruction unless it has been published.
class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(const fs::path& target);  // makes the parents of `target` too; CreateError, IoError
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const fs::path& path() const { return path_; }
  // Syncs, renames to `target` and syncs the parent; what was there before is removed after that. IoError.
  void publish();

 private:
  void replace();
  fs::path target_, path_;
  int lock_ = -1;
  bool published_ = false;
};

// Has `write` fill a directory that becomes `target` when it is done; on any error nothing of it is left. CreateError when the directory cannot be
// made; a file in it that cannot be created is a failing disk: IoError, as everything after that.
void write_directory(const fs::path& target, const std::function<void(const fs::path& directory)>& write);

// Removes what dead processes left of writing `target`.
void clean_leftovers_of(const fs::path& target);

// Renames `directory` to a hidden name, then removes it: what is left of an interrupted removal is never taken for a checkpoint.
void remove_checkpoint(const fs::path& directory);

}  // namespace dz::checkpoint
