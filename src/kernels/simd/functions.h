// exp2 and log on sixteen lanes: the operations of numerics/functions.h.
#pragma once

#include "kernels/simd/v16.h"
#include "numerics/constants.h"

namespace dz::kernels::DZ_SIMD {

// Sixteen 32-bit integers; arithmetic wraps.
#ifdef __AVX512F__

struct I16 {
  __m512i v;
};

DZ_INLINE I16 splat_bits(uint32_t x) { return {_mm512_set1_epi32(static_cast<int>(x))}; }
DZ_INLINE I16 bits_of(V16 x) { return {_mm512_castps_si512(x.v)}; }
DZ_INLINE V16 float_of(I16 x) { return {_mm512_castsi512_ps(x.v)}; }
DZ_INLINE V16 to_float(I16 x) { return {_mm512_cvtepi32_ps(x.v)}; }
DZ_INLINE I16 operator+(I16 a, I16 b) { return {_mm512_add_epi32(a.v, b.v)}; }
DZ_INLINE I16 operator-(I16 a, I16 b) { return {_mm512_sub_epi32(a.v, b.v)}; }
DZ_INLINE I16 operator&(I16 a, I16 b) { return {_mm512_and_si512(a.v, b.v)}; }
DZ_INLINE I16 to_exponent(I16 n) { return {_mm512_slli_epi32(n.v, 23)}; }
DZ_INLINE I16 from_exponent(I16 n) { return {_mm512_srai_epi32(n.v, 23)}; }

#else

struct I16 {
  __m256i lo, hi;
};

DZ_INLINE I16 splat_bits(uint32_t x) { return {_mm256_set1_epi32(static_cast<int>(x)), _mm256_set1_epi32(static_cast<int>(x))}; }
DZ_INLINE I16 bits_of(V16 x) { return {_mm256_castps_si256(x.lo), _mm256_castps_si256(x.hi)}; }
DZ_INLINE V16 float_of(I16 x) { return {_mm256_castsi256_ps(x.lo), _mm256_castsi256_ps(x.hi)}; }
DZ_INLINE V16 to_float(I16 x) { return {_mm256_cvtepi32_ps(x.lo), _mm256_cvtepi32_ps(x.hi)}; }
DZ_INLINE I16 operator+(I16 a, I16 b) { return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)}; }
DZ_INLINE I16 operator-(I16 a, I16 b) { return {_mm256_sub_epi32(a.lo, b.lo), _mm256_sub_epi32(a.hi, b.hi)}; }
DZ_INLINE I16 operator&(I16 a, I16 b) { return {_mm256_and_si256(a.lo, b.lo), _mm256_and_si256(a.hi, b.hi)}; }
DZ_INLINE I16 to_exponent(I16 n) { return {_mm256_slli_epi32(n.lo, 23), _mm256_slli_epi32(n.hi, 23)}; }
DZ_INLINE I16 from_exponent(I16 n) { return {_mm256_srai_epi32(n.lo, 23), _mm256_srai_epi32(n.hi, 23)}; }

#endif

// 2^f on [-1/2, 1/2].
DZ_INLINE V16 exp2_polynomial(V16 f) {
  using namespace numerics;
  V16 p = splat(kExp2C6);
  p = fma(p, f, splat(kExp2C5));
  p = fma(p, f, splat(kExp2C4));
  p = fma(p, f, splat(kExp2C3));
  p = fma(p, f, splat(kExp2C2));
  p = fma(p, f, splat(kExp2C1));
  return fma(p, f, splat(1.0f));
}

// The clamps of the scalar code are replaced by one selection at the end, with the same result for every float: below -126 the polynomial's
// value is dropped for +0, a NaN for itself. The low bits of kRoundMagicBits are zero, so its shift needs no subtraction.
DZ_INLINE V16 exp2(V16 x) {
  using namespace numerics;
  static_assert(kRoundMagicBits << 23 == 0);
  const V16 clamped = lower(x, splat(128.0f));
  const V16 t = clamped + splat(kRoundMagic);
  const V16 f = clamped - (t - splat(kRoundMagic));
  const V16 scaled = float_of(bits_of(exp2_polynomial(f)) + to_exponent(bits_of(t)));
  const V16 otherwise = raise(x, zero());  // 0 > x ? 0 : x
  return select(x >= splat(-126.0f), scaled, otherwise);
}

// For x <= 0, -inf and NaN, as numbers of the compute type T make them: three operations fewer. Below -126 it may be a denormal, which every
// operation that reads it takes for the +0 of exp2. The low bits of a NaN that comes from bf16 are zero, so that its shift adds nothing.
template <class T>
DZ_INLINE V16 exp2_of_negative(V16 x) {
  using namespace numerics;
  if constexpr (sizeof(T) == sizeof(float)) {
    return exp2(x);
  } else {
    const V16 y = raise(x, splat(-127.0f));  // a NaN stays
    const V16 t = y + splat(kRoundMagic);
    return float_of(bits_of(exp2_polynomial(y - (t - splat(kRoundMagic)))) + to_exponent(bits_of(t)));
  }
}

DZ_INLINE V16 log(V16 x) {
  using namespace numerics;
  const I16 bits = bits_of(x);
  const I16 above = bits - splat_bits(kSqrtHalfBits);
  const V16 e = to_float(from_exponent(above));
  const V16 f = float_of(bits - (above & splat_bits(kExponentMask))) - splat(1.0f);
  const V16 f2 = f * f;
  V16 p = splat(kLogP8);
  p = fma(p, f, splat(kLogP7));
  p = fma(p, f, splat(kLogP6));
  p = fma(p, f, splat(kLogP5));
  p = fma(p, f, splat(kLogP4));
  p = fma(p, f, splat(kLogP3));
  p = fma(p, f, splat(kLogP2));
  p = fma(p, f, splat(kLogP1));
  p = fma(p, f, splat(kLogP0));
  V16 y = p * (f * f2);
  y = fma(e, splat(kLn2Low), y);
  y = fma(splat(-0.5f), f2, y);
  y = f + y;
  y = fma(e, splat(kLn2High), y);
  const V16 of_small = select(x > splat(-kSmallestNormal), splat(-kInfinity), splat(__builtin_nanf("")));
  y = select(splat(kSmallestNormal) > x, of_small, y);
  return select(splat(kInfinity) > x, y, x);
}

// One element by the same operations.
DZ_INLINE float exp2(float x) { return first_of(exp2(splat(x))); }
DZ_INLINE float log(float x) { return first_of(log(splat(x))); }

}  // namespace dz::kernels::DZ_SIMD
