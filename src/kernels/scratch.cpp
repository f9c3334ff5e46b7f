#include "kernels/scratch.h"

#include "base/large_memory.h"

namespace dz::kernels {

Scratch::~Scratch() { free_large(data_); }

std::byte* Scratch::reserve(int64_t bytes) {
  if (bytes <= bytes_) return data_;
  free_large(data_);
  data_ = nullptr;
  bytes_ = 0;
  data_ = static_cast<std::byte*>(allocate_large(static_cast<size_t>(bytes)));
  bytes_ = bytes;
  return data_;
}

}  // namespace dz::kernels
