// Sixteen float lanes: one AVX-512 register or two AVX2 registers, so that an op is written once and keeps the contract's row order on both.
//
// DZ_SIMD (avx2, avx512 or avx512_bf16, set by the build) names the namespace: the compilations of a file share no symbol. Everything here is always
// inlined for the same reason. Operations are single IEEE instructions; nothing estimates or contracts.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "base/dtype.h"
#include "numerics/rounding.h"

namespace dz::kernels::DZ_SIMD {

inline constexpr int64_t kLanes = 16;

// Which lanes of a vector exist: all of them, or the first `count` (0 to 16) at the end of a row. A missing lane loads as +0 and is not stored.
struct All {};
struct First {
  int64_t count;
};

#ifdef __AVX512F__

struct Mask {
  __mmask16 bits;
};

struct V16 {
  __m512 v;
};

DZ_INLINE __mmask16 bits_of(First lanes) { return static_cast<__mmask16>((1u << lanes.count) - 1u); }

DZ_INLINE V16 zero() { return {_mm512_setzero_ps()}; }
DZ_INLINE V16 splat(float x) { return {_mm512_set1_ps(x)}; }
DZ_INLINE V16 load(const float* p, All = {}) { return {_mm512_loadu_ps(p)}; }
DZ_INLINE V16 load(const float* p, First lanes) { return {_mm512_maskz_loadu_ps(bits_of(lanes), p)}; }
DZ_INLINE void store(float* p, V16 x, All = {}) { _mm512_storeu_ps(p, x.v); }
DZ_INLINE void store(float* p, V16 x, First lanes) { _mm512_mask_storeu_ps(p, bits_of(lanes), x.v); }

DZ_INLINE V16 widen(__m256i halves) { return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16))}; }
DZ_INLINE V16 load(const bf16* p, All = {}) { return widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
DZ_INLINE V16 load(const bf16* p, First lanes) { return widen(_mm256_maskz_loadu_epi16(bits_of(lanes), p)); }

#ifdef __AVX512BF16__

// The instruction that the contract's rounding describes.
DZ_INLINE __m256i narrow(V16 x) { return (__m256i)_mm512_cvtneps_pbh(x.v); }
DZ_INLINE V16 round_to_bf16(V16 x) { return widen(narrow(x)); }

#else

// The bits of numerics::to_bf16 in the upper half of each lane; the lower half is left over.
DZ_INLINE __m512i rounded_bits(V16 x) {
  const __m512i bits = _mm512_castps_si512(x.v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i biased = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff));
  const __mmask16 number = _mm512_cmp_ps_mask(x.v, x.v, _CMP_ORD_Q);
  const __mmask16 tiny = _mm512_testn_epi32_mask(bits, _mm512_set1_epi32(0x7f800000));
  const __m512i rounded = _mm512_mask_add_epi32(_mm512_set1_epi32(0x7fc00000), number, biased, odd);
  return _mm512_mask_and_epi32(rounded, tiny, bits, _mm512_set1_epi32(INT32_MIN));
}
DZ_INLINE V16 round_to_bf16(V16 x) {
  return {_mm512_castsi512_ps(_mm512_and_si512(rounded_bits(x), _mm512_set1_epi32(static_cast<int>(0xffff0000u))))};
}
DZ_INLINE __m256i narrow(V16 x) { return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded_bits(x), 16)); }

#endif

DZ_INLINE void store(bf16* p, V16 x, All = {}) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow(x)); }
DZ_INLINE void store(bf16* p, V16 x, First lanes) { _mm256_mask_storeu_epi16(p, bits_of(lanes), narrow(x)); }

DZ_INLINE V16 operator+(V16 a, V16 b) { return {_mm512_add_ps(a.v, b.v)}; }
DZ_INLINE V16 operator-(V16 a, V16 b) { return {_mm512_sub_ps(a.v, b.v)}; }
DZ_INLINE V16 operator*(V16 a, V16 b) { return {_mm512_mul_ps(a.v, b.v)}; }
DZ_INLINE V16 operator/(V16 a, V16 b) { return {_mm512_div_ps(a.v, b.v)}; }
DZ_INLINE V16 operator-(V16 a) { return {_mm512_xor_ps(a.v, _mm512_set1_ps(-0.0f))}; }
DZ_INLINE V16 fma(V16 a, V16 b, V16 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
DZ_INLINE V16 sqrt(V16 a) { return {_mm512_sqrt_ps(a.v)}; }

DZ_INLINE Mask operator>=(V16 a, V16 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_GE_OQ)}; }
DZ_INLINE Mask operator>(V16 a, V16 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ)}; }
DZ_INLINE Mask operator&(Mask a, Mask b) { return {static_cast<__mmask16>(a.bits & b.bits)}; }
DZ_INLINE V16 select(Mask m, V16 yes, V16 no) { return {_mm512_mask_blend_ps(m.bits, no.v, yes.v)}; }
DZ_INLINE Mask mask_of(First lanes) { return {bits_of(lanes)}; }

// x > m ? x : m, lane by lane: a NaN in x is passed over.
DZ_INLINE V16 raise(V16 m, V16 x) { return {_mm512_max_ps(x.v, m.v)}; }
// m < x ? m : x, lane by lane: a NaN in x stays.
DZ_INLINE V16 lower(V16 x, V16 m) { return {_mm512_min_ps(m.v, x.v)}; }

DZ_INLINE __m256 low_half(V16 x) { return _mm512_castps512_ps256(x.v); }
DZ_INLINE __m256 high_half(V16 x) { return _mm512_extractf32x8_ps(x.v, 1); }
DZ_INLINE V16 join(__m256 low, __m256 high) { return {_mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1)}; }

#else

struct Mask {
  __m256 lo, hi;
};

struct V16 {
  __m256 lo, hi;
};

DZ_INLINE __m256i lanes_below(int64_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

DZ_INLINE V16 zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
DZ_INLINE V16 splat(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
DZ_INLINE V16 load(const float* p, All = {}) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
DZ_INLINE V16 load(const float* p, First lanes) {
  return {_mm256_maskload_ps(p, lanes_below(lanes.count)), _mm256_maskload_ps(p + 8, lanes_below(lanes.count - 8))};
}
DZ_INLINE void store(float* p, V16 x, All = {}) {
  _mm256_storeu_ps(p, x.lo);
  _mm256_storeu_ps(p + 8, x.hi);
}
DZ_INLINE void store(float* p, V16 x, First lanes) {
  _mm256_maskstore_ps(p, lanes_below(lanes.count), x.lo);
  _mm256_maskstore_ps(p + 8, lanes_below(lanes.count - 8), x.hi);
}

DZ_INLINE __m256 widen(__m128i halves) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16)); }
DZ_INLINE V16 load(const bf16* p, All = {}) {
  const auto* halves = reinterpret_cast<const __m128i*>(p);
  return {widen(_mm_loadu_si128(halves)), widen(_mm_loadu_si128(halves + 1))};
}
DZ_INLINE V16 load(const bf16* p, First lanes) {
  bf16 whole[kLanes] = {};
  for (int64_t i = 0; i < lanes.count; ++i) whole[i] = p[i];
  return load(whole);
}

// The bits of numerics::to_bf16 in the upper half of each lane; the lower half is left over.
DZ_INLINE __m256i rounded_bits(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
  const __m256i tiny = _mm256_cmpeq_epi32(_mm256_and_si256(bits, _mm256_set1_epi32(0x7f800000)), _mm256_setzero_si256());
  const __m256i sign = _mm256_and_si256(bits, _mm256_set1_epi32(INT32_MIN));
  const __m256 nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
  const __m256 rounded = _mm256_blendv_ps(_mm256_castsi256_ps(sum), _mm256_castsi256_ps(sign), _mm256_castsi256_ps(tiny));
  return _mm256_castps_si256(_mm256_blendv_ps(rounded, _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000)), nan));
}
DZ_INLINE V16 round_to_bf16(V16 x) {
  const __m256i upper = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
  return {_mm256_castsi256_ps(_mm256_and_si256(rounded_bits(x.lo), upper)), _mm256_castsi256_ps(_mm256_and_si256(rounded_bits(x.hi), upper))};
}
DZ_INLINE void store(bf16* p, V16 x, All = {}) {
  const __m256i packed = _mm256_packus_epi32(_mm256_srli_epi32(rounded_bits(x.lo), 16), _mm256_srli_epi32(rounded_bits(x.hi), 16));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0xd8));
}
DZ_INLINE void store(bf16* p, V16 x, First lanes) {
  bf16 whole[kLanes];
  store(whole, x);
  for (int64_t i = 0; i < lanes.count; ++i) p[i] = whole[i];
}

DZ_INLINE V16 operator+(V16 a, V16 b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
DZ_INLINE V16 operator-(V16 a, V16 b) { return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)}; }
DZ_INLINE V16 operator*(V16 a, V16 b) { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
DZ_INLINE V16 operator/(V16 a, V16 b) { return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)}; }
DZ_INLINE V16 operator-(V16 a) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_xor_ps(a.lo, sign), _mm256_xor_ps(a.hi, sign)};
}
DZ_INLINE V16 fma(V16 a, V16 b, V16 c) { return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)}; }
DZ_INLINE V16 sqrt(V16 a) { return {_mm256_sqrt_ps(a.lo), _mm256_sqrt_ps(a.hi)}; }

DZ_INLINE Mask operator>=(V16 a, V16 b) { return {_mm256_cmp_ps(a.lo, b.lo, _CMP_GE_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_GE_OQ)}; }
DZ_INLINE Mask operator>(V16 a, V16 b) { return {_mm256_cmp_ps(a.lo, b.lo, _CMP_GT_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_GT_OQ)}; }
DZ_INLINE Mask operator&(Mask a, Mask b) { return {_mm256_and_ps(a.lo, b.lo), _mm256_and_ps(a.hi, b.hi)}; }
DZ_INLINE V16 select(Mask m, V16 yes, V16 no) { return {_mm256_blendv_ps(no.lo, yes.lo, m.lo), _mm256_blendv_ps(no.hi, yes.hi, m.hi)}; }
DZ_INLINE Mask mask_of(First lanes) { return {_mm256_castsi256_ps(lanes_below(lanes.count)), _mm256_castsi256_ps(lanes_below(lanes.count - 8))}; }

// x > m ? x : m, lane by lane: a NaN in x is passed over.
DZ_INLINE V16 raise(V16 m, V16 x) { return {_mm256_max_ps(x.lo, m.lo), _mm256_max_ps(x.hi, m.hi)}; }
// m < x ? m : x, lane by lane: a NaN in x stays.
DZ_INLINE V16 lower(V16 x, V16 m) { return {_mm256_min_ps(m.lo, x.lo), _mm256_min_ps(m.hi, x.hi)}; }

DZ_INLINE __m256 low_half(V16 x) { return x.lo; }
DZ_INLINE __m256 high_half(V16 x) { return x.hi; }
DZ_INLINE V16 join(__m256 low, __m256 high) { return {low, high}; }

#endif

DZ_INLINE V16 select_first(All, V16 yes, V16) { return yes; }
DZ_INLINE V16 select_first(First lanes, V16 yes, V16 no) { return select(mask_of(lanes), yes, no); }

// The compute type's rounding point, kept in float.
template <class T>
DZ_INLINE V16 round_as(V16 x) {
  if constexpr (sizeof(T) == sizeof(bf16)) {
    return round_to_bf16(x);
  } else {
    return x;
  }
}

// The tree of the row order: i + (i + 8), then + 4, + 2, + 1.
DZ_INLINE float sum(V16 x) {
  const __m256 eight = _mm256_add_ps(low_half(x), high_half(x));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

// The greatest lane; no lane is NaN (raise() never lets one in).
DZ_INLINE float greatest(V16 x) {
  const __m256 eight = _mm256_max_ps(high_half(x), low_half(x));
  const __m128 four = _mm_max_ps(_mm256_extractf128_ps(eight, 1), _mm256_castps256_ps128(eight));
  const __m128 two = _mm_max_ps(_mm_movehl_ps(four, four), four);
  return _mm_cvtss_f32(_mm_max_ss(_mm_movehdup_ps(two), two));
}

DZ_INLINE float first_of(V16 x) { return _mm_cvtss_f32(_mm256_castps256_ps128(low_half(x))); }
DZ_INLINE float sqrt(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }

// Asks for the line of `p`, which may lie anywhere: the hardware follows a stream only up to the end of its 4 KiB and takes a few lines to find the
// next one, so ops that read a tensor once ask for what they need this many bytes, or a group of rows, later.
inline constexpr int64_t kAheadBytes = 2048;

template <class T>
DZ_INLINE void prefetch(const T* p) {
  _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0);
}
template <class T>
DZ_INLINE void prefetch_ahead(const T* p) {
  _mm_prefetch(reinterpret_cast<const char*>(p) + kAheadBytes, _MM_HINT_T0);
}

// body(j, lanes) for each vector of a row of `count` elements, ascending.
template <class Body>
DZ_INLINE void for_vectors(int64_t count, const Body& body) {
  int64_t j = 0;
  for (; j + kLanes <= count; j += kLanes) body(j, All{});
  if (j < count) body(j, First{count - j});
}

}  // namespace dz::kernels::DZ_SIMD
