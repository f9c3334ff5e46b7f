// Memory of an op on rows that is too large for the stack: a few rows in f32 between two passes.
#pragma once

#include <cstdint>

namespace dz::kernels {

// At least `count` floats of the calling thread, 64-byte aligned, kept for its next call; contents are lost between calls. std::bad_alloc.
float* row_scratch(int64_t count);

}  // namespace dz::kernels
