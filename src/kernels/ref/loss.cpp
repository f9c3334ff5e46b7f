// Cross entropy and z-loss in scalar code; the formulas and their order are in loss.h.
#include "kernels/loss.h"

#include <cstring>

#include "kernels/ref/ref.h"
#include "numerics/sums.h"

namespace dz::kernels::ref {
namespace {

using numerics::kLog2E;
using numerics::round_to;

template <class T>
void set_dlogits(const CrossEntropy<T>& args, int64_t row, int64_t j, float value) {
  const T rounded = round_to<T>(value);
  std::memcpy(reinterpret_cast<std::byte*>(args.logits + row * args.vocab) + static_cast<size_t>(j) * sizeof(T), &rounded, sizeof(T));
}

template <class T>
void masked_row(const CrossEntropy<T>& args, int64_t row) {
  args.ce[row] = 0.0f;
  args.z[row] = 0.0f;
  for (int64_t j = 0; args.gradient && j < args.vocab; ++j) set_dlogits(args, row, j, 0.0f);
}

template <class T>
void gradient_row(const CrossEntropy<T>& args, int64_t row, float s, float lse) {
  const float* exponentials = args.logits + row * args.vocab;
  const float pull = (2.0f * args.z_loss) * lse;
  for (int64_t j = 0; j < args.vocab; ++j) {
    const float p = exponentials[j] / s;
    const float onehot = j == args.targets[row] ? 1.0f : 0.0f;
    set_dlogits(args, row, j, ((p - onehot) + pull * p) * args.weight);
  }
}

template <class T>
void cross_entropy(const CrossEntropy<T>& args, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    if (args.targets[i] == kMasked) {
      masked_row(args, i);
      continue;
    }
    float* logits = args.logits + i * args.vocab;
    const float target_logit = logits[args.targets[i]];
    float m = -numerics::kInfinity;
    for (int64_t j = 0; j < args.vocab; ++j) m = logits[j] > m ? logits[j] : m;
    numerics::RowSum<float> sum;
    for (int64_t j = 0; j < args.vocab; ++j) {
      const float e = numerics::exp2((logits[j] - m) * kLog2E);
      sum.add(e);
      if (args.gradient) logits[j] = e;
    }
    const float s = sum.total();
    const float log_s = numerics::log(s);
    const float lse = m + log_s;
    args.ce[i] = log_s - (target_logit - m);
    args.z[i] = lse * lse;
    if (args.gradient) gradient_row(args, i, s, lse);
  }
}

}  // namespace

void fill_loss(Table& table) {
  table.bf16_forms.cross_entropy = cross_entropy<bf16>;
  table.f32_forms.cross_entropy = cross_entropy<float>;
}

}  // namespace dz::kernels::ref
