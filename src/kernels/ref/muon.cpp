// Muon's elementwise ops in scalar code; the formulas are in muon.h.
#include "kernels/muon.h"

#include <cmath>

#include "kernels/ref/lerp.h"
#include "kernels/ref/ref.h"
#include "numerics/rounding.h"

namespace dz::kernels::ref {
namespace {

void muon_momentum(const MuonMomentum& args, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const float g = args.gradient[i] * args.clip;
    const float m = lerp(args.m[i], g, args.take);
    const float u = args.nesterov ? lerp(g, m, args.momentum) : m;
    args.m[i] = m;
    args.update[i] = numerics::to_float(numerics::to_bf16(u));
  }
}

void muon_normalize(const MuonNormalize& args, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) args.out[i] = numerics::to_bf16(args.x[i] / args.norm);
}

void muon_combine(const MuonCombine& args, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) args.out[i] = numerics::to_bf16(args.x_scale * numerics::to_float(args.x[i]) + args.acc_scale * args.acc[i]);
}

void muon_apply(const MuonApply& args, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) args.p[i] = std::fma(args.step, numerics::to_float(args.x[i]), args.p[i] * args.decay);
}

}  // namespace

void fill_muon(Table& table) {
  table.muon_momentum = muon_momentum;
  table.muon_normalize = muon_normalize;
  table.muon_combine = muon_combine;
  table.muon_apply = muon_apply;
}

}  // namespace dz::kernels::ref
