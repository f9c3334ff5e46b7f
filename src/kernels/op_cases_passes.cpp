// The ops of a training step that memory bounds, at the shapes of a model: for `bench passes`.
#include <algorithm>

#include "base/check.h"
#include "kernels/op_memory.h"

namespace dz::kernels {
namespace {

template <class T>
void add_passes(const PassShape& shape, std::vector<OpCase>& cases) {
  constexpr CaseSet kSet = CaseSet::kBench;
  const RowsCase rows{.rows = shape.rows, .width = shape.width, .set = kSet, .vocab = shape.vocab};
  const ElementsCase mlp{.count = shape.rows * shape.d_ff, .set = kSet}, state{.count = shape.state, .set = kSet};
  const ColumnsCase columns{.rows = shape.rows, .width = shape.width, .segment = shape.seq, .set = kSet, .vocab = shape.vocab};
  add_norms<T>(rows, kSet, cases);
  add_columns<T>(columns, kSet, cases);
  add_norm_weights(columns, kSet, cases);
  add_ropes<T>({.rows = shape.rows, .heads = shape.heads, .head_dim = shape.head_dim, .positions = shape.seq, .set = kSet}, kSet, cases);
  add_swiglus<T>(mlp, kSet, cases);
  add_losses<T>({.rows = shape.loss_rows, .vocab = shape.vocab, .z_loss = 1e-5f, .set = kSet}, kSet, cases);
  add_states(state, kSet, cases);
  add_adamw(state, kSet, false, 0.1f, cases);
}

}  // namespace

PassShape PassShape::scaled(double factor) const {
  const auto part = [factor](int64_t count) { return std::max<int64_t>(1, static_cast<int64_t>(factor * static_cast<double>(count))); };
  PassShape small = *this;
  small.rows = part(rows);
  small.loss_rows = part(loss_rows);
  small.state = part(state);
  return small;
}

std::vector<OpCase> pass_cases(const PassShape& shape, DType dtype) {
  DZ_CHECK(dtype == DType::kBF16 || dtype == DType::kF32, "dtype", static_cast<int>(dtype));
  std::vector<OpCase> cases;
  if (dtype == DType::kBF16) {
    add_passes<bf16>(shape, cases);
  } else {
    add_passes<float>(shape, cases);
  }
  return cases;
}

}  // namespace dz::kernels
