#include "checkpoint/elements.h"

#include <bit>
#include <cstring>

#include "base/check.h"

namespace dz::checkpoint {
namespace {

constexpr uint32_t kInfinity = 0x7f800000u, kMagnitude = 0x7fffffffu;

// Integers all the way: no flag of the floating-point unit can change a denormal or a signalling NaN.
template <class Small, class Widen>
void widen_each(std::span<const std::byte> bytes, std::span<float> out, const Widen& widen) {
  for (size_t i = 0; i < out.size(); ++i) {
    Small small;
    std::memcpy(&small, bytes.data() + i * sizeof small, sizeof small);
    const uint32_t bits = widen(small);
    std::memcpy(&out[i], &bits, sizeof bits);
  }
}

template <class Narrow>
void narrow_each(std::span<const float> values, std::span<std::byte> out, const Narrow& narrow) {
  for (size_t i = 0; i < values.size(); ++i) {
    uint32_t bits;
    std::memcpy(&bits, &values[i], sizeof bits);
    const uint16_t small = narrow(bits);
    std::memcpy(out.data() + i * sizeof small, &small, sizeof small);
  }
}

// `value` / 2^shift to nearest, ties to even.
uint32_t shift_rounded(uint32_t value, uint32_t shift) {
  const uint32_t down = value >> shift, rest = value & ((1u << shift) - 1), half = 1u << (shift - 1);
  return down + static_cast<uint32_t>(rest > half || (rest == half && (down & 1u) != 0));
}

}  // namespace

bool is_float_type(std::string_view dtype) { return dtype == "F32" || dtype == "BF16" || dtype == "F16"; }

uint16_t bits_to_bf16(uint32_t f32) {
  if ((f32 & kMagnitude) > kInfinity) {
    const uint32_t upper = f32 >> 16;
    return static_cast<uint16_t>((upper & 0x7fu) != 0 ? upper : upper | 0x40u);  // never an infinity
  }
  return static_cast<uint16_t>(shift_rounded(f32, 16));  // a carry goes into the exponent, up to infinity
}

uint16_t bits_to_f16(uint32_t f32) {
  const uint32_t sign = f32 >> 16 & 0x8000u, magnitude = f32 & kMagnitude;
  if (magnitude > kInfinity) {
    const uint32_t payload = magnitude >> 13 & 0x3ffu;
    return static_cast<uint16_t>(sign | 0x7c00u | (payload != 0 ? payload : 0x200u));
  }
  if (magnitude >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00u);  // 65,536 and more
  if (magnitude >= 0x38800000u) return static_cast<uint16_t>(sign | shift_rounded(magnitude - 0x38000000u, 13));
  const uint32_t exponent = magnitude >> 23;
  if (exponent < 102) return static_cast<uint16_t>(sign);  // below half of the smallest denormal, 2^-25
  return static_cast<uint16_t>(sign | shift_rounded((magnitude & 0x7fffffu) | 0x800000u, 126 - exponent));
}

uint32_t bits_from_f16(uint16_t f16) {
  const uint32_t sign = static_cast<uint32_t>(f16 & 0x8000u) << 16;
  uint32_t exponent = (f16 >> 10) & 31u;
  uint32_t fraction = f16 & 1023u;
  if (exponent == 31) return sign | kInfinity | fraction << 13;
  if (exponent == 0) {
    if (fraction == 0) return sign;
    // A denormal half is a normal float: shift its leading one into place.
    const auto shift = static_cast<uint32_t>(std::countl_zero(fraction)) - 21u;
    fraction = (fraction << shift) & 1023u;
    exponent = 1u - shift;  // wraps below zero and comes back with the bias
  }
  return sign | (exponent + 112u) << 23 | fraction << 13;
}

void widen(std::string_view dtype, std::span<const std::byte> bytes, std::span<float> out) {
  DZ_CHECK(bytes.size() == out.size() * (dtype == "F32" ? 4 : 2), "dtype", dtype, "bytes", bytes.size(), "elements", out.size());
  if (dtype == "F32") {
    if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  } else if (dtype == "BF16") {
    widen_each<uint16_t>(bytes, out, [](uint16_t small) { return static_cast<uint32_t>(small) << 16; });
  } else {
    DZ_CHECK(dtype == "F16", "dtype", dtype);
    widen_each<uint16_t>(bytes, out, bits_from_f16);
  }
}

void narrow(std::span<const float> values, std::string_view dtype, std::span<std::byte> out) {
  DZ_CHECK(out.size() == values.size() * (dtype == "F32" ? 4 : 2), "dtype", dtype, "bytes", out.size(), "elements", values.size());
  if (dtype == "F32") {
    if (!out.empty()) std::memcpy(out.data(), values.data(), out.size());
  } else if (dtype == "BF16") {
    narrow_each(values, out, bits_to_bf16);
  } else {
    DZ_CHECK(dtype == "F16", "dtype", dtype);
    narrow_each(values, out, bits_to_f16);
  }
}

}  // namespace dz::checkpoint
