// Elements of tensor files: F32, BF16 and F16, widened exactly and rounded as IEEE 754 says. Not the rounding of the compute path
// (numerics/rounding.h), which makes zeros of denormals: a conversion between files keeps them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace dz::checkpoint {

// The format's names of the types that weights have: F32, BF16, F16.
bool is_float_type(std::string_view dtype);

// To nearest, ties to even; too large becomes infinity; a NaN stays a NaN of its sign, and keeps its payload where the upper bits hold one, so
// that what was widened comes back bit for bit.
uint16_t bits_to_bf16(uint32_t f32);
uint16_t bits_to_f16(uint32_t f32);
uint32_t bits_from_f16(uint16_t f16);

// `bytes` holds elements of `dtype`, as many as `out`. Exact; the bits of a NaN are kept.
void widen(std::string_view dtype, std::span<const std::byte> bytes, std::span<float> out);
// The other way.
void narrow(std::span<const float> values, std::string_view dtype, std::span<std::byte> out);

}  // namespace dz::checkpoint
