#include "base/large_memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <limits>
#include <new>

namespace dz {

void* allocate_large(size_t bytes) {
  constexpr size_t kHugePage = size_t{2} << 20, kLine = 64;
  const size_t unit = bytes >= kHugePage / 2 ? kHugePage : kLine;
  if (bytes > std::numeric_limits<size_t>::max() - unit) throw std::bad_alloc();
  const size_t rounded = (bytes + unit - 1) / unit * unit;
  void* memory = std::aligned_alloc(unit, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  // A wish: refusal changes nothing.
  if (unit == kHugePage) madvise(memory, rounded, MADV_HUGEPAGE);
  return memory;
}

void free_large(void* memory) noexcept { std::free(memory); }

}  // namespace dz
