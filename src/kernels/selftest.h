// The promise of the table, tested on the machine at hand: every form gives the bits of the scalar code.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/table.h"

namespace dz::kernels {

enum class SelfTestLength : uint8_t { kStartUp, kLong };  // milliseconds, seconds

struct SelfTestReport {
  int64_t cases = 0;
  std::string difference;  // the first case that differs; empty: none does
  bool ok() const { return difference.empty(); }
};

// Compares `form` with the scalar table on small inputs with tails, denormals, infinities and NaN. pool null: on the calling thread.
SelfTestReport self_test(const Table& form, SelfTestLength length, ThreadPool* pool);

}  // namespace dz::kernels
