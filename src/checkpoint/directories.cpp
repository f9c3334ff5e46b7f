#include "checkpoint/directories.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "checkpoint/fault.h"
#include "checkpoint/manifest.h"

namespace dz::checkpoint {
namespace {

fs::path parent_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

fs::path hidden(const fs::path& directory, const char* kind) {
  return directory.parent_path() / ("." + directory.filename().string() + "." + kind + "-" + std::to_string(::getpid()));
}

[[noreturn]] void fail(const fs::path& path, const std::string& what) { throw IoError(path.string() + ": " + what + ": " + std::strerror(errno)); }

void rename_or_throw(const fs::path& from, const fs::path& to) {
  fault_point(to);
  if (::rename(from.c_str(), to.c_str()) != 0) fail(from, "cannot rename to " + to.string());
}

void sync_or_throw(const fs::path& directory) {
  fault_point(directory);
  sync_directory(directory);
}

void remove_or_throw(const fs::path& path) {
  fault_point(path);
  if (::remove(path.c_str()) != 0 && errno != ENOENT) fail(path, "cannot remove");
}

// Checkpoints have no directories in them; one that somebody put there is left, and reported by rmdir.
void remove_tree(const fs::path& directory) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) files.push_back(entry->path());
  for (const fs::path& file : files) remove_or_throw(file);
  remove_or_throw(directory);
}

// The new checkpoint is in place, so an old one that cannot be removed is no failure; clean_leftovers tries again at the next start.
void try_remove_tree(const fs::path& directory) {
  try {
    remove_tree(directory);
  } catch (const IoError&) {
  }
}

// Takes the lock of a directory; -1 when a live process holds it.
int lock_directory(const fs::path& directory) {
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return -1;
  // A file system without locks gives another error; the lock of the run directory then has to be enough.
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(fd);
    return -1;
  }
  return fd;
}

}  // namespace

TemporaryDirectory::TemporaryDirectory(const fs::path& target) : target_(target), path_(hidden(target, "tmp")) {
  if (target.has_parent_path()) dz::create_directories(target.parent_path());
  fault_point(path_);
  std::error_code ignored;
  fs::remove_all(path_, ignored);  // of this process number: an earlier save that could not clean up, or a process long dead
  if (::mkdir(path_.c_str(), 0755) != 0) {
    if (errno == ENOSPC || errno == EDQUOT || errno == EIO) fail(path_, "cannot create the directory");
    throw CreateError(path_.string() + ": cannot create the directory: " + std::strerror(errno));
  }
  lock_ = lock_directory(path_);
}

TemporaryDirectory::~TemporaryDirectory() {
  if (!published_) {
    std::error_code ignored;  // the reason of the failed save matters more; clean_leftovers tries again at the next start
    fs::remove_all(path_, ignored);
  }
  if (lock_ >= 0) ::close(lock_);
}

void TemporaryDirectory::publish() {
  sync_or_throw(path_);
  std::error_code ignored;
  if (fs::exists(target_, ignored)) return replace();
  rename_or_throw(path_, target_);
  published_ = true;
  sync_or_throw(parent_of(target_));
}

void TemporaryDirectory::replace() {
  const fs::path& target = target_;
  fault_point(target);
  if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) {
    published_ = true;  // now path_ is the replaced checkpoint; it stays until the exchange is on disk
    sync_or_throw(parent_of(target));
    try_remove_tree(path_);
    return;
  }
  if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) fail(path_, "cannot exchange with " + target.string());
  // No exchange here (NFS): two renames, and clean_leftovers puts the old one back if we die between them.
  const fs::path old = hidden(target, "old");
  rename_or_throw(target, old);
  rename_or_throw(path_, target);
  published_ = true;
  sync_or_throw(parent_of(target));
  try_remove_tree(old);
}

void write_directory(const fs::path& target, const std::function<void(const fs::path& directory)>& write) {
  TemporaryDirectory temporary(target);
  try {
    write(temporary.path());
  } catch (const CreateError& error) {
    throw IoError(error.what());
  }
  temporary.publish();
}

void clean_leftovers_of(const fs::path& target) {
  const std::string prefix = "." + target.filename().string() + ".tmp-";
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(parent_of(target), error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const bool numbered = name.size() > prefix.size() && name.find_first_not_of("0123456789", prefix.size()) == std::string::npos;
    if (name.starts_with(prefix) && numbered) found.push_back(entry->path());
  }
  for (const fs::path& path : found) {
    const int lock = lock_directory(path);
    if (lock < 0) continue;  // another process is writing it
    try_remove_tree(path);
    ::close(lock);
  }
}

void remove_checkpoint(const fs::path& directory) {
  const fs::path doomed = hidden(directory, "del");
  rename_or_throw(directory, doomed);
  remove_tree(doomed);
}

std::vector<std::string> clean_leftovers(const fs::path& checkpoints) {
  std::vector<std::string> notes;
  std::vector<fs::path> hidden_ones;
  std::error_code error;
  for (fs::directory_iterator entry(checkpoints, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().filename().string().starts_with(".step-")) hidden_ones.push_back(entry->path());
  for (const fs::path& path : hidden_ones) {
    const std::string name = path.filename().string();
    const size_t dot = name.rfind('.');
    const std::string step = name.substr(1, dot > 0 ? dot - 1 : 0), kind = name.substr(dot, 5);
    if (!step_of(step) || (kind != ".tmp-" && kind != ".old-" && kind != ".del-")) continue;
    const int lock = lock_directory(path);
    if (lock < 0) {
      notes.push_back(path.string() + ": left alone, another process is writing it");
      continue;
    }
    try {
      if (kind == ".old-" && !fs::exists(checkpoints / step)) {
        rename_durably(path, checkpoints / step);
        notes.push_back(path.string() + ": put back as " + step + ", its replacement was interrupted");
      } else {
        remove_tree(path);
        notes.push_back(path.string() + ": removed, " + (kind == ".tmp-" ? "a save was interrupted" : "a removal was interrupted"));
      }
    } catch (const Error& failure) {
      notes.push_back(failure.what());
    }
    ::close(lock);
  }
  return notes;
}

}  // namespace dz::checkpoint
