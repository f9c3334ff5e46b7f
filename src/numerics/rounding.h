// Conversions between float and bf16, and the row order's 16 lanes. Always inlined: these functions are used in files compiled for
// several instruction sets, and an outlined copy from one of them must never serve another.
#pragma once

#include <bit>
#include <cstdint>

#include "base/dtype.h"

#define DZ_INLINE [[gnu::always_inline]] inline

namespace dz::numerics {

inline constexpr uint32_t kCanonicalNan = 0x7fc00000u;  // how a NaN is stored, logged and digested

DZ_INLINE float to_float(bf16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }
DZ_INLINE float to_float(float x) { return x; }

// Round to nearest even; a denormal becomes a zero of its sign (as VCVTNEPS2BF16 does); any NaN becomes the canonical one.
DZ_INLINE bf16 to_bf16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {static_cast<uint16_t>(kCanonicalNan >> 16)};
  if (magnitude < 0x00800000u) return {static_cast<uint16_t>((bits >> 16) & 0x8000u)};
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

// The compute type's rounding point: bf16 rounds, float does nothing.
template <class T>
DZ_INLINE T round_to(float x) {
  if constexpr (sizeof(T) == sizeof(bf16)) {
    return to_bf16(x);
  } else {
    return x;
  }
}

}  // namespace dz::numerics
