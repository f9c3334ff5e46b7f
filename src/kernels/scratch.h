// A buffer that a thread keeps between calls: aligned, growing, on huge pages where the system gives them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dz::kernels {

class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch();

  // At least `bytes` bytes, 64-byte aligned; what was in it is lost when it grows. std::bad_alloc.
  std::byte* reserve(int64_t bytes);

 private:
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace dz::kernels
