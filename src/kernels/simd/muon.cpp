// Muon's elementwise ops: bound by memory, as those of simd/state.cpp.
#include "kernels/simd/lerp.h"
#include "kernels/simd/ops.h"
#include "kernels/simd/v16.h"

namespace dz::kernels::DZ_SIMD {
void muon_momentum(const MuonMomentum& args, int64_t begin, int64_t end) {
  const Lerp towards_gradient = lerp_by(args.take), towards_momentum = lerp_by(args.momentum);
  for_vectors(end - begin, [&](int64_t j, auto lanes) {
    const int64_t i = begin + j;
    const V16 g = load(args.gradient + i, lanes) * splat(args.clip);
    const V16 m = towards_gradient(load(args.m + i, lanes), g);
    store(args.m + i, m, lanes);
    store(args.update + i, round_to_bf16(args.nesterov ? towards_momentum(g, m) : m), lanes);
  });
}

void muon_normalize(const MuonNormalize& args, int64_t begin, int64_t end) {
  for_vectors(end - begin, [&](int64_t j, auto lanes) { store(args.out + begin + j, load(args.x + begin + j, lanes) / splat(args.norm), lanes); });
}

void muon_combine(const MuonCombine& args, int64_t begin, int64_t end) {
  for_vectors(end - begin, [&](int64_t j, auto lanes) {
    const int64_t i = begin + j;
    store(args.out + i, load(args.x + i, lanes) * splat(args.x_scale) + load(args.acc + i, lanes) * splat(args.acc_scale), lanes);
  });
}

void muon_apply(const MuonApply& args, int64_t begin, int64_t end) {
  for_vectors(end - begin, [&](int64_t j, auto lanes) {
    const int64_t i = begin + j;
    store(args.p + i, fma(splat(args.step), load(args.x + i, lanes), load(args.p + i, lanes) * splat(args.decay)), lanes);
  });
}

}  // namespace dz::kernels::DZ_SIMD
