#include "kernels/muon.h"

#include "kernels/split.h"

namespace dz::kernels {
namespace {

constexpr int64_t kLine = 64;  // elements: no two threads write one cache line, of f32 or of bf16

}  // namespace

void muon_momentum(const MuonMomentum& args, ThreadPool& pool) { split_units(pool, args.count, 1, kLine, active().muon_momentum, args); }

void muon_normalize(const MuonNormalize& args, ThreadPool& pool) { split_units(pool, args.count, 1, kLine, active().muon_normalize, args); }

void muon_combine(const MuonCombine& args, ThreadPool& pool) { split_units(pool, args.count, 1, kLine, active().muon_combine, args); }

void muon_apply(const MuonApply& args, ThreadPool& pool) { split_units(pool, args.count, 1, kLine, active().muon_apply, args); }

}  // namespace dz::kernels
