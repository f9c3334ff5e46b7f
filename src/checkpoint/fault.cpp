#include "checkpoint/fault.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>

#include "base/error.h"

namespace dz::checkpoint {
namespace {

enum class Fault { kNone, kKill, kFail };

std::mutex mutex;
std::string current_spec;
int64_t count = 0;

// Counts one operation and says what shall happen to it.
Fault next_operation() {
  const char* value = std::getenv("DZ_TEST_CRASH");
  const std::string spec = value ? value : "";
  const std::lock_guard lock(mutex);
  if (spec != current_spec) {
    current_spec = spec;
    count = 0;
  }
  ++count;
  const bool kill = spec.starts_with("save:");
  if ((!kill && !spec.starts_with("fail:")) || std::to_string(count) != spec.substr(5)) return Fault::kNone;
  return kill ? Fault::kKill : Fault::kFail;
}

void strike(Fault fault, const fs::path& path) {
  if (fault == Fault::kKill) ::kill(::getpid(), SIGKILL);
  if (fault == Fault::kFail) throw IoError(path.string() + ": No space left on device (asked for by DZ_TEST_CRASH)");
}

}  // namespace

void fault_point(const fs::path& path) { strike(next_operation(), path); }

void write_or_fault(File& file, std::span<const std::byte> bytes) {
  const Fault fault = next_operation();
  file.write(fault == Fault::kNone ? bytes : bytes.first(bytes.size() / 2));
  strike(fault, file.path());
}

int64_t fault_operations() {
  const std::lock_guard lock(mutex);
  return count;
}

}  // namespace dz::checkpoint
