#include "train/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace dz::train {
namespace {

// Every run has its lock; a copy may have lost it, but not its checkpoints.
void refuse_foreign(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored) || fs::is_empty(path, ignored) || fs::exists(path / ".lock", ignored) || fs::exists(path / "checkpoints", ignored))
    return;
  throw CreateError(Complaint{.where = path.string(),
                              .found = "files that are not a run",
                              .expected = "an empty or new directory, or a run",
                              .hint = "choose another with --dir"});
}

bool holds_a_run(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path / "checkpoints", ignored) || fs::exists(path / "metrics.jsonl", ignored);
}

fs::path free_name(const fs::path& path) {
  for (int k = 1;; ++k) {
    fs::path candidate = path.string() + ".old-" + std::to_string(k);
    if (!fs::exists(candidate)) return candidate;
  }
}

}  // namespace

RunDirectory::RunDirectory(const fs::path& path, bool fresh, std::vector<std::string>& notes)
    : path_(fs::is_symlink(path) ? fs::canonical(path) : path) {
  if (fs::is_directory(path_)) refuse_foreign(path_);
  dz::create_directories(path_);
  lock();
  if (fresh && holds_a_run(path_)) {
    // The lock moves along with the directory, so no other trainer can have been at work in it.
    const fs::path old = free_name(path_);
    rename_durably(path_, old);
    notes.push_back("moved the old run to " + old.string());
    ::close(lock_);
    lock_ = -1;
    dz::create_directories(path_);
    lock();
  }
}

RunDirectory::~RunDirectory() {
  if (lock_ >= 0) ::close(lock_);
}

void RunDirectory::lock() {
  const fs::path file = path_ / ".lock";
  lock_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock_ < 0) throw CreateError(file.string() + ": cannot create: " + std::strerror(errno));
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    const bool busy = errno == EWOULDBLOCK;
    const std::string cause = std::strerror(errno);
    ::close(lock_);
    lock_ = -1;
    if (busy) throw TryAgainError(path_.string() + ": another trainer is at work in this run directory; wait for it, or choose another with --dir");
    throw IoError(file.string() + ": cannot lock: " + cause);
  }
}

void RunDirectory::write_config(const Config& config, const std::string& environment_json) const {
  write_file_atomic(path_ / "recipe.yaml", recipe_yaml(config.recipe));
  write_file_atomic(path_ / "topology.yaml", topology_yaml(config.topology));
  write_file_atomic(path_ / "run.yaml", run_yaml(config.run));
  write_file_atomic(path_ / "environment.json", environment_json);
}

void RunDirectory::add_start(const std::string& json_line) const {
  File file = File::append(path_ / "starts.jsonl");
  file.write(json_line + "\n");
  file.close();
}

}  // namespace dz::train
