// Cross entropy on sixteen lanes: three passes over a row of logits (maximum, exponentials and their sum, gradient), which stays in L2. The sum
// is one chain a lane, but each link waits for an exp2 that does not depend on it, so one vector at a time keeps the pipes full.
#include "kernels/simd/functions.h"
#include "kernels/simd/ops.h"
#include "kernels/simd/v16.h"

namespace dz::kernels::DZ_SIMD {
namespace {

DZ_INLINE float row_maximum(const float* logits, int64_t vocab) {
  constexpr int kVectors = 4;
  V16 m[kVectors];
  for (int v = 0; v < kVectors; ++v) m[v] = splat(-numerics::kInfinity);
  int64_t j = 0;
  for (; j + kVectors * kLanes <= vocab; j += kVectors * kLanes) {
    for (int v = 0; v < kVectors; ++v) m[v] = raise(m[v], load(logits + j + v * kLanes));
  }
  for_vectors(vocab - j, [&](int64_t i, auto lanes) { m[0] = raise(m[0], select_first(lanes, load(logits + j + i, lanes), m[0])); });
  return greatest(raise(raise(m[0], m[1]), raise(m[2], m[3])));
}

template <class T>
void masked_row(const CrossEntropy<T>& args, int64_t row) {
  args.ce[row] = 0.0f;
  args.z[row] = 0.0f;
  if (args.gradient) __builtin_memset(args.dlogits(row), 0, static_cast<size_t>(args.vocab) * sizeof(T));
}

// Sum of the exponentials of a row; `keep` leaves them in place of the logits.
template <bool keep>
DZ_INLINE float sum_of_exponentials(float* logits, int64_t vocab, float m) {
  const V16 m16 = splat(m), log2e = splat(numerics::kLog2E);
  V16 sums = zero();
  for_vectors(vocab, [&](int64_t j, auto lanes) {
    const V16 e = exp2((load(logits + j, lanes) - m16) * log2e);
    if constexpr (keep) store(logits + j, e, lanes);
    sums = sums + select_first(lanes, e, zero());
  });
  return sum(sums);
}

// A vector of the gradient is narrower than the one of exponentials that it is made from, so it never reaches those still to be read.
template <class T>
DZ_INLINE void gradient_row(const CrossEntropy<T>& args, int64_t row, int64_t target, float s, float lse) {
  float* exponentials = args.logits + row * args.vocab;
  T* dlogits = args.dlogits(row);
  const V16 s16 = splat(s), z_factor = splat(2.0f * args.z_loss * lse), weight = splat(args.weight);
  const V16 p_target = splat(exponentials[target]) / s16;
  for_vectors(args.vocab, [&](int64_t j, auto lanes) {
    const V16 p = load(exponentials + j, lanes) / s16;
    store(dlogits + j, (p + z_factor * p) * weight, lanes);
  });
  // p - 0 is p, so only the target's element is left to subtract from.
  store(dlogits + target, ((p_target - splat(1.0f)) + z_factor * p_target) * weight, First{1});
}

template <class T>
void loss_row(const CrossEntropy<T>& args, int64_t row) {
  float* logits = args.logits + row * args.vocab;
  const int64_t target = args.targets[row];
  const float m = row_maximum(logits, args.vocab), target_logit = logits[target];
  const float s = args.gradient ? sum_of_exponentials<true>(logits, args.vocab, m) : sum_of_exponentials<false>(logits, args.vocab, m);
  const float log_s = log(s), lse = m + log_s;
  args.ce[row] = log_s - (target_logit - m);
  args.z[row] = lse * lse;
  if (args.gradient) gradient_row(args, row, target, s, lse);
}

}  // namespace

template <class T>
void cross_entropy(const CrossEntropy<T>& args, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    if (args.targets[row] == kMasked) {
      masked_row(args, row);
    } else {
      loss_row(args, row);
    }
  }
}

template void cross_entropy<bf16>(const CrossEntropy<bf16>&, int64_t, int64_t);
template void cross_entropy<float>(const CrossEntropy<float>&, int64_t, int64_t);

}  // namespace dz::kernels::DZ_SIMD
