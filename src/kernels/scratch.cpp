#include "kernels/scratch.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace dz::kernels {

Scratch::~Scratch() { std::free(data_); }

std::byte* Scratch::reserve(int64_t bytes) {
  if (bytes <= bytes_) return data_;
  constexpr int64_t kHugePage = int64_t{2} << 20;
  const int64_t unit = bytes >= kHugePage / 2 ? kHugePage : 4096;
  const int64_t rounded = (bytes + unit - 1) / unit * unit;
  std::free(data_);
  data_ = static_cast<std::byte*>(std::aligned_alloc(static_cast<size_t>(unit), static_cast<size_t>(rounded)));
  bytes_ = data_ == nullptr ? 0 : rounded;
  if (data_ == nullptr) throw std::bad_alloc();
  // A wish: packed panels are read in long strides, and 4 KiB pages would cost a TLB miss each. Refusal changes nothing.
  if (unit == kHugePage) madvise(data_, static_cast<size_t>(rounded), MADV_HUGEPAGE);
  return data_;
}

}  // namespace dz::kernels
