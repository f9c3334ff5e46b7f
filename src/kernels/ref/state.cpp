// Lane merge, casts, gradient norm and AdamW in scalar code; the formulas are in state.h.
#include "kernels/state.h"

#include <algorithm>
#include <cmath>

#include "kernels/ref/lerp.h"
#include "kernels/ref/ref.h"
#include "numerics/sums.h"

namespace dz::kernels::ref {
namespace {

void add(const Add& args, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    float sum = args.more_count > 0 ? args.more[args.more_count - 1][i] : args.b[i];
    for (int64_t k = args.more_count; k-- > 0;) sum = (k > 0 ? args.more[k - 1][i] : args.b[i]) + sum;
    args.a[i] = args.a[i] + sum;
  }
}

void cast_to_bf16(const CastToBf16& args, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) args.out[i] = numerics::to_bf16(args.x[i]);
}

void squared_norms(const SquaredNorms& args, int64_t begin, int64_t end) {
  for (int64_t block = begin; block < end; ++block) {
    numerics::RowSum<double> sum;
    const int64_t last = std::min(args.count, (block + 1) * kNormBlock);
    for (int64_t i = block * kNormBlock; i < last; ++i) sum.add_product(double{args.x[i]}, double{args.x[i]});
    args.sums[block] = sum.total();
  }
}

void adamw(const AdamW& args, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const float g = args.gradient[i] * args.clip;
    const float p = args.p[i] * args.decay;
    const float m = args.single ? lerp(args.m[i], g, args.m_take) : args.m[i] * args.m_keep + g * args.m_take;
    const float v = args.single ? std::fma(g * g, args.v_take, args.v[i] * args.v_keep) : args.v[i] * args.v_keep + (g * g) * args.v_take;
    const float d = std::sqrt(v) / args.sqrt_bc2 + args.eps;
    args.p[i] = p + (m / d) * args.step;
    args.m[i] = m;
    args.v[i] = v;
  }
}

}  // namespace

void fill_state(Table& table) {
  table.add = add;
  table.cast_to_bf16 = cast_to_bf16;
  table.squared_norms = squared_norms;
  table.adamw = adamw;
}

void fill(Table& table) {
  fill_gemm(table);
  fill_rows(table);
  fill_columns(table);
  fill_attention(table);
  fill_loss(table);
  fill_state(table);
  fill_muon(table);
}

}  // namespace dz::kernels::ref
