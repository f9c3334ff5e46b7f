// Cross entropy on sixteen lanes: three passes over a row of logits, which stays in L2. The sum is one chain a lane, but each link waits for an
// exp2 that does not depend on it, so one vector at a time keeps the pipes full.
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
  if (args.dlogits != nullptr) __builtin_memset(args.dlogits + row * args.vocab, 0, static_cast<size_t>(args.vocab) * sizeof(T));
}

template <class T>
void loss_row(const CrossEntropy<T>& args, int64_t row) {
  const float* logits = args.logits + row * args.vocab;
  const int64_t target = args.targets[row];
  const float m = row_maximum(logits, args.vocab);
  const V16 m16 = splat(m), log2e = splat(numerics::kLog2E);

  V16 sums = zero();
  for_vectors(args.vocab, [&](int64_t j, auto lanes) { sums = sums + select_first(lanes, exp2((load(logits + j, lanes) - m16) * log2e), zero()); });
  const float s = sum(sums), log_s = log(s), lse = m + log_s;
  args.ce[row] = log_s - (logits[target] - m);
  args.z[row] = lse * lse;
  if (args.dlogits == nullptr) return;

  const V16 s16 = splat(s), z_factor = splat(2.0f * args.z_loss * lse), weight = splat(args.weight);
  T* dlogits = args.dlogits + row * args.vocab;
  for_vectors(args.vocab, [&](int64_t j, auto lanes) {
    const V16 p = exp2((load(logits + j, lanes) - m16) * log2e) / s16;
    store(dlogits + j, (p + z_factor * p) * weight, lanes);
  });
  // p - 0 is p, so only the target's element is left to subtract from.
  const V16 p = splat(exp2((logits[target] - m) * numerics::kLog2E) / s);
  store(dlogits + target, ((p - splat(1.0f)) + z_factor * p) * weight, First{1});
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
