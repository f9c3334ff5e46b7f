// Faults on purpose, so that tests can break a save at each of its file-system operations (docs/checkpoints.md).
//   DZ_TEST_CRASH=save:K   SIGKILL at the K-th operation of the saves of this process (a write: after half of its bytes)
//   DZ_TEST_CRASH=fail:K   that operation fails as on a full disk
// Without the variable a call only counts. Operations are counted from 1, anew whenever the variable changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/file.h"

namespace dz::checkpoint {

// Before each mkdir, create, fsync, close, rename and unlink of a save. IoError when told to fail.
void fault_point(const fs::path& path);

// file.write(bytes), as one operation.
void write_or_fault(File& file, std::span<const std::byte> bytes);

// Operations counted so far.
int64_t fault_operations();

}  // namespace dz::checkpoint
