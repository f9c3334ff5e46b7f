// Memory of one attention unit that is too large for the stack: the packed query tiles of its heads.
#pragma once

#include <cstdint>

namespace dz::kernels {

// At least `bytes` bytes of the calling thread, 64-byte aligned, kept for its next call; contents are lost between calls. std::bad_alloc.
void* attention_scratch(int64_t bytes);

}  // namespace dz::kernels
