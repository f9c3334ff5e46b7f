// Element types. bf16 is storage only: arithmetic happens in float (numerics/rounding.h converts).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

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

// Of a C++ type that holds numbers.
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, bf16>) {
    return DType::kBF16;
  } else if constexpr (std::is_same_v<T, double>) {
    return DType::kF64;
  } else {
    static_assert(std::is_same_v<T, float>);
    return DType::kF32;
  }
}

// As configurations and options name what a model computes in: "bf16", else "fp32".
constexpr DType compute_dtype(std::string_view name) { return name == "bf16" ? DType::kBF16 : DType::kF32; }

}  // namespace dz
