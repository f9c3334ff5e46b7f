// Element types. bf16 is storage only: arithmetic happens in float (numerics/rounding.h converts).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dz {

struct bf16 {
  uint16_t bits;
};
static_assert(sizeof(bf16) == 2);

enum class DType : uint8_t { kF32, kBF16, kF64, kI64, kI32, kU32, kU16, kU8, kF16 };

constexpr size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kF64:
    case DType::kI64:
      return 8;
    case DType::kF32:
    case DType::kI32:
    case DType::kU32:
      return 4;
    case DType::kBF16:
    case DType::kF16:
    case DType::kU16:
      return 2;
    case DType::kU8:
      return 1;
  }
  return 0;
}

}  // namespace dz
