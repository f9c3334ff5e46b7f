// exp2 and log in float: a fixed list of IEEE operations, so that scalar code and 8 or 16 vector lanes give the same bits.
// There is no branch: comparisons select, integer operations build the exponent, polynomials are Horner chains of fma.
// Always inlined (see rounding.h). The double functions are in functions64.h.
#pragma once

#include <bit>
#include <cstdint>

#include "numerics/constants.h"
#include "numerics/rounding.h"

namespace dz::numerics {

DZ_INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
DZ_INLINE double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }

// 2^x; 0.91 ulp at most (docs/numerics.md, "exp2 and log"). exp2(0) = 1, exp2(x < -126) = exp2(-inf) = +0, exp2(x >= 128) = inf, NaN stays.
DZ_INLINE float exp2(float x) {
  float y = x < -126.0f ? -127.0f : x;  // n = -127 makes the exponent field, and with it the result, zero
  y = y > 128.0f ? 128.0f : y;          // n = 128 makes it infinity
  const float t = y + kRoundMagic;      // rounds to the nearest integer, ties to even
  const float f = y - (t - kRoundMagic);
  float p = kExp2C6;
  p = fma(p, f, kExp2C5);
  p = fma(p, f, kExp2C4);
  p = fma(p, f, kExp2C3);
  p = fma(p, f, kExp2C2);
  p = fma(p, f, kExp2C1);
  p = fma(p, f, 1.0f);
  const uint32_t n = std::bit_cast<uint32_t>(t) - kRoundMagicBits;
  const float scaled = std::bit_cast<float>(std::bit_cast<uint32_t>(p) + (n << 23));
  return x != x ? x : scaled;  // the exponent arithmetic could turn a NaN with a payload into a number
}

// Natural logarithm; 1.2 ulp at most. log(1) = +0; log(+-0 and denormals) = -inf, log(inf) = inf, log(x < 0) = NaN, NaN stays.
DZ_INLINE float log(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t above = bits - kSqrtHalfBits;  // mantissa in [sqrt(1/2), sqrt(2))
  const float e = static_cast<float>(static_cast<int32_t>(above) >> 23);
  const float f = std::bit_cast<float>(bits - (above & kExponentMask)) - 1.0f;  // exact
  const float f2 = f * f;
  float p = kLogP8;
  p = fma(p, f, kLogP7);
  p = fma(p, f, kLogP6);
  p = fma(p, f, kLogP5);
  p = fma(p, f, kLogP4);
  p = fma(p, f, kLogP3);
  p = fma(p, f, kLogP2);
  p = fma(p, f, kLogP1);
  p = fma(p, f, kLogP0);
  float y = p * (f * f2);
  y = fma(e, kLn2Low, y);
  y = fma(-0.5f, f2, y);
  y = f + y;
  y = fma(e, kLn2High, y);
  y = x < kSmallestNormal ? (x > -kSmallestNormal ? -kInfinity : __builtin_nanf("")) : y;
  return x < kInfinity ? y : x;  // inf and NaN stay
}

}  // namespace dz::numerics
