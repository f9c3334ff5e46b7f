// What every fuzz target shares. A target defines LLVMFuzzerTestOneInput, catches dz::Error only, and counts the inputs that it accepted:
// a target that accepts nothing looks at nothing.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dz::fuzz {

inline int64_t accepted = 0;

}  // namespace dz::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
