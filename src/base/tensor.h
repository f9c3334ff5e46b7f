// A named view of a tensor that somebody else owns: what checkpoints store, digests cover and optimizers walk.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.h"

namespace dz {

using Shape = std::vector<int64_t>;

inline int64_t element_count(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

// "[2, 3]", as messages show it.
inline std::string shape_text(const Shape& shape) {
  std::string text = "[";
  for (const int64_t size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

struct TensorView {
  std::string name;  // the Hugging Face name
  DType dtype = DType::kF32;
  Shape shape;  // row-major, contiguous
  const void* data = nullptr;
  int64_t elements() const { return element_count(shape); }
  size_t bytes() const { return static_cast<size_t>(elements()) * size_of(dtype); }
};

}  // namespace dz
