// Memory for tensors: aligned to cache lines, and on huge pages where the system gives them. Kernels read it in long strides, which on pages of
// 4 KiB costs a TLB miss a row.
#pragma once

#include <cstddef>
#include <vector>

namespace dz {

// At least `bytes` bytes, not initialised, to be given back with free_large(). std::bad_alloc.
void* allocate_large(size_t bytes);
void free_large(void* memory) noexcept;

// For std::vector and the like.
template <class T>
struct LargeAllocator {
  using value_type = T;
  LargeAllocator() = default;
  template <class U>
  LargeAllocator(const LargeAllocator<U>&) {}
  T* allocate(size_t count) { return static_cast<T*>(allocate_large(count * sizeof(T))); }
  void deallocate(T* memory, size_t) noexcept { free_large(memory); }
  template <class U>
  bool operator==(const LargeAllocator<U>&) const {
    return true;
  }
};

template <class T>
using LargeVector = std::vector<T, LargeAllocator<T>>;

}  // namespace dz
