// Cross entropy and z-loss in scalar code; the formulas and their order are in loss.h.
#include "kernels/loss.h"

#include <algorithm>

#include "kernels/ref/ref.h"
#include "numerics/sums.h"

namespace dz::kernels::ref {
namespace {

using numerics::kLog2E;
using numerics::round_to;

template <class T>
void masked_row(const CrossEntropy<T>& args, int64_t row) {
  args.ce[row] = 0.0f;
  args.z[row] = 0.0f;
  if (args.dlogits != nullptr) std::fill_n(args.dlogits + row * args.vocab, args.vocab, round_to<T>(0.0f));
}

template <class T>
void gradient_row(const CrossEntropy<T>& args, int64_t row, float m, float s, float lse) {
  const float* logits = args.logits + row * args.vocab;
  const float pull = (2.0f * args.z_loss) * lse;
  for (int64_t j = 0; j < args.vocab; ++j) {
    const float p = numerics::exp2((logits[j] - m) * kLog2E) / s;
    const float onehot = j == args.targets[row] ? 1.0f : 0.0f;
    args.dlogits[row * args.vocab + j] = round_to<T>(((p - onehot) + pull * p) * args.weight);
  }
}

template <class T>
void cross_entropy(const CrossEntropy<T>& args, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    if (args.targets[i] == kMasked) {
      masked_row(args, i);
      continue;
    }
    const float* logits = args.logits + i * args.vocab;
    float m = -numerics::kInfinity;
    for (int64_t j = 0; j < args.vocab; ++j) m = logits[j] > m ? logits[j] : m;
    numerics::RowSum<float> sum;
    for (int64_t j = 0; j < args.vocab; ++j) sum.add(numerics::exp2((logits[j] - m) * kLog2E));
    const float s = sum.total();
    const float log_s = numerics::log(s);
    const float lse = m + log_s;
    args.ce[i] = log_s - (logits[args.targets[i]] - m);
    args.z[i] = lse * lse;
    if (args.dlogits != nullptr) gradient_row(args, i, m, s, lse);
  }
}

}  // namespace

void fill_loss(Table& table) {
  table.bf16_forms.cross_entropy = cross_entropy<bf16>;
  table.f32_forms.cross_entropy = cross_entropy<float>;
}

}  // namespace dz::kernels::ref
