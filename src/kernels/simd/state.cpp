// Ops on f32 state: lane merge, cast, squared norms, AdamW. All are bound by memory: each tensor is read once, two vectors in flight.
#include "kernels/simd/lerp.h"
#include "kernels/simd/ops.h"
#include "kernels/simd/v16.h"

namespace dz::kernels::DZ_SIMD {
namespace {

// Sixteen lanes of double, for sums of squares.
#ifdef __AVX512F__

struct D16 {
  __m512d lo, hi;
};

DZ_INLINE D16 zero_double() { return {_mm512_setzero_pd(), _mm512_setzero_pd()}; }
DZ_INLINE D16 add_square(V16 x, D16 chain) {
  const __m512d lo = _mm512_cvtps_pd(low_half(x)), hi = _mm512_cvtps_pd(high_half(x));
  return {_mm512_fmadd_pd(lo, lo, chain.lo), _mm512_fmadd_pd(hi, hi, chain.hi)};
}
DZ_INLINE double sum(D16 x) {
  const __m512d eight = _mm512_add_pd(x.lo, x.hi);
  const __m256d four = _mm256_add_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd(eight, 1));
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
  return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

#else

struct D16 {
  __m256d part[4];
};

DZ_INLINE D16 zero_double() {
  const __m256d zeros = _mm256_setzero_pd();
  return {{zeros, zeros, zeros, zeros}};
}
DZ_INLINE D16 add_square(V16 x, D16 chain) {
  const __m128 quarter[4] = {_mm256_castps256_ps128(x.lo), _mm256_extractf128_ps(x.lo, 1), _mm256_castps256_ps128(x.hi),
                             _mm256_extractf128_ps(x.hi, 1)};
  for (int i = 0; i < 4; ++i) {
    const __m256d value = _mm256_cvtps_pd(quarter[i]);
    chain.part[i] = _mm256_fmadd_pd(value, value, chain.part[i]);
  }
  return chain;
}
DZ_INLINE double sum(D16 x) {
  const __m256d four = _mm256_add_pd(_mm256_add_pd(x.part[0], x.part[2]), _mm256_add_pd(x.part[1], x.part[3]));
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
  return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

#endif

// kSingle: the moments of the form for one tensor at a time, `lerp` being that of m_take.
template <bool kSingle, class Lanes>
DZ_INLINE void adamw_vector(const AdamW& args, Lerp lerp, int64_t i, Lanes lanes) {
  const V16 g = load(args.gradient + i, lanes) * splat(args.clip);
  const V16 decayed = load(args.p + i, lanes) * splat(args.decay);
  const V16 old_m = load(args.m + i, lanes), kept_v = load(args.v + i, lanes) * splat(args.v_keep);
  const V16 m = kSingle ? lerp(old_m, g) : old_m * splat(args.m_keep) + g * splat(args.m_take);
  const V16 v = kSingle ? fma(g * g, splat(args.v_take), kept_v) : kept_v + g * g * splat(args.v_take);
  const V16 d = sqrt(v) / splat(args.sqrt_bc2) + splat(args.eps);
  store(args.m + i, m, lanes);
  store(args.v + i, v, lanes);
  store(args.p + i, decayed + m / d * splat(args.step), lanes);
}

}  // namespace

void add(const Add& args, int64_t begin, int64_t end) {
  float* a = args.a + begin;
  const float* b = args.b + begin;
  const int64_t terms = args.more_count;
  if (terms == 0) {
    for_vectors(end - begin, [&](int64_t i, auto lanes) { store(a + i, load(a + i, lanes) + load(b + i, lanes), lanes); });
    return;
  }
  for_vectors(end - begin, [&](int64_t i, auto lanes) {
    V16 sum = load(args.more[terms - 1] + begin + i, lanes);
    for (int64_t k = terms - 1; k-- > 0;) sum = load(args.more[k] + begin + i, lanes) + sum;
    store(a + i, load(a + i, lanes) + (load(b + i, lanes) + sum), lanes);
  });
}

void cast_to_bf16(const CastToBf16& args, int64_t begin, int64_t end) {
  const float* x = args.x + begin;
  bf16* out = args.out + begin;
  for_vectors(end - begin, [&](int64_t i, auto lanes) {
    prefetch_ahead(x + i);
    prefetch_ahead(out + i);
    store(out + i, load(x + i, lanes), lanes);
  });
}

void squared_norms(const SquaredNorms& args, int64_t begin, int64_t end) {
  for (int64_t block = begin; block < end; ++block) {
    const int64_t first = block * kNormBlock, left = args.count - first;
    D16 chain = zero_double();
    for_vectors(left < kNormBlock ? left : kNormBlock, [&](int64_t i, auto lanes) {
      prefetch_ahead(args.x + first + i);
      chain = add_square(load(args.x + first + i, lanes), chain);
    });
    args.sums[block] = sum(chain);
  }
}

void adamw(const AdamW& args, int64_t begin, int64_t end) {
  const Lerp lerp = lerp_by(args.m_take);
  if (args.single) {
    for_vectors(end - begin, [&](int64_t i, auto lanes) { adamw_vector<true>(args, lerp, begin + i, lanes); });
  } else {
    for_vectors(end - begin, [&](int64_t i, auto lanes) { adamw_vector<false>(args, lerp, begin + i, lanes); });
  }
}

}  // namespace dz::kernels::DZ_SIMD
