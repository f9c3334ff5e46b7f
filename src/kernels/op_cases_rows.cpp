// Cases of the ops of rows.h.
#include <fmt/format.h>

#include "kernels/op_memory.h"

namespace dz::kernels {
namespace {

template <class T>
double bytes_of(int64_t elements) {
  return static_cast<double>(elements) * sizeof(T);
}

template <class T>
std::string named(const char* op, const RowsCase& c) {
  return fmt::format("{} {} {}x{}{}", op, type_name<T>(), c.rows, c.width, name_of(c.values));
}

}  // namespace

template <class T>
void add_norms(const RowsCase& c, CaseSet set, std::vector<OpCase>& cases) {
  const int64_t count = c.rows * c.width;
  const auto forward = [c, count](CaseMemory& memory, bool residual) {
    RmsNormForward<T> args{.rows = c.rows, .width = c.width, .eps = 1e-6f};
    args.x = memory.input<T>(count);
    args.weight = memory.input<float>(c.width);
    args.y = residual ? memory.in_out<T>("y", count) : memory.output<T>("y", count);
    args.residual = residual ? args.y : nullptr;
    args.rstd = memory.output<float>("rstd", c.rows);
    return units_of<T>(c.rows, args, &TypedForms<T>::rmsnorm_forward, rmsnorm_forward<T>);
  };
  add_case(cases, set, c, "rmsnorm_forward", named<T>("rmsnorm_forward", c), bytes_of<T>(2 * count), 0,
           [forward](CaseMemory& memory) { return forward(memory, false); });
  add_case(cases, set, c, "rmsnorm_forward", named<T>("rmsnorm_forward + residual", c), bytes_of<T>(3 * count), 0,
           [forward](CaseMemory& memory) { return forward(memory, true); });
  add_case(cases, set, c, "embedding_forward", named<T>("embedding_forward", c), bytes_of<T>(count) + bytes_of<float>(count), 0,
           [c, count](CaseMemory& memory) {
             EmbeddingForward<T> args{.rows = c.rows, .width = c.width};
             if (sizeof(T) == sizeof(bf16)) memory.last_bit(16);
             args.table = memory.input<float>(c.vocab * c.width);
             auto* tokens = memory.integers(c.rows, 0, static_cast<int32_t>(c.vocab));
             tokens[0] = static_cast<int32_t>(c.vocab / 2);  // the row that a fault changes is used
             args.tokens = tokens;
             args.y = memory.output<T>("y", count);
             return units_of<T>(c.rows, args, &TypedForms<T>::embedding_forward, embedding_forward<T>);
           });
}

template <class T>
void add_ropes(const RopeCase& c, CaseSet set, std::vector<OpCase>& cases) {
  const int64_t width = c.heads * c.head_dim, count = c.rows * width, half = c.head_dim / 2;
  const auto name = [&](const char* op) {
    return fmt::format("{} {} {}x{}x{} from {}{}", op, type_name<T>(), c.rows, c.heads, c.head_dim, c.first_position, name_of(c.values));
  };
  add_case(cases, set, c, "qk_norm_rope_forward", name("qk_norm_rope_forward"), bytes_of<T>(2 * count), 0, [=](CaseMemory& memory) {
    QkNormRopeForward<T> args{
        .rows = c.rows, .heads = c.heads, .head_dim = c.head_dim, .positions = c.positions, .first_position = c.first_position, .eps = 1e-6f};
    args.x = memory.input<T>(count);
    args.weight = memory.input<float>(width);
    args.cos = memory.input<float>((c.first_position + c.positions) * half);
    args.sin = memory.input<float>((c.first_position + c.positions) * half);
    args.y = memory.output<T>("y", count);
    args.rstd = memory.output<float>("rstd", c.rows);
    return units_of<T>(c.rows, args, &TypedForms<T>::qk_norm_rope_forward, qk_norm_rope_forward<T>);
  });
  if (c.first_position > 0) return;
  const double backward_bytes = bytes_of<T>(2 * count) + bytes_of<float>(count);
  add_case(cases, set, c, "qk_norm_rope_backward", name("qk_norm_rope_backward"), backward_bytes, 0, [=](CaseMemory& memory) {
    QkNormRopeBackward<T> args{.rows = c.rows, .heads = c.heads, .head_dim = c.head_dim, .positions = c.positions};
    args.dy = memory.input<float>(count);
    args.x = memory.input<T>(count);
    args.weight = memory.input<float>(width);
    args.cos = memory.input<float>(c.positions * half);
    args.sin = memory.input<float>(c.positions * half);
    args.rstd = memory.positive(c.rows);
    args.dx = memory.output<T>("dx", count);
    const int64_t blocks = row_blocks(c.rows, c.positions);
    args.chains = memory.output<float>("chains", 2 * blocks * width);
    return units_of<T>(blocks, args, &TypedForms<T>::qk_norm_rope_backward, qk_norm_rope_backward<T>);
  });
}

template <class T>
void add_swiglus(const ElementsCase& c, CaseSet set, std::vector<OpCase>& cases) {
  const auto name = [&](const char* op) { return fmt::format("{} {} {}{}", op, type_name<T>(), c.count, name_of(c.values)); };
  constexpr float kSpread = 60.0f;  // gates far enough out that the exponential saturates
  add_case(cases, set, c, "swiglu_forward", name("swiglu_forward"), bytes_of<T>(3 * c.count), 0, [=](CaseMemory& memory) {
    SwigluForward<T> args{.count = c.count};
    args.gate = memory.input<T>(c.count, kSpread);
    args.up = memory.input<T>(c.count);
    args.out = memory.output<T>("out", c.count);
    return units_of<T>(c.count, args, &TypedForms<T>::swiglu_forward, swiglu_forward<T>);
  });
  // Gates of both kinds: with some so far out that the exponential saturates, and with none, where vector forms may take another way.
  const auto backward = [=](CaseMemory& memory, float spread, bool with_out) {
    SwigluBackward<T> args{.count = c.count};
    args.gate = memory.input<T>(c.count, spread);
    args.up = memory.input<T>(c.count);
    args.dgate = memory.in_out<T>("dgate", c.count);
    args.dout = args.dgate;
    args.dup = memory.output<T>("dup", c.count);
    if (with_out) args.out = memory.output<T>("out", c.count);
    return units_of<T>(c.count, args, &TypedForms<T>::swiglu_backward, swiglu_backward<T>);
  };
  add_case(cases, set, c, "swiglu_backward", name("swiglu_backward"), bytes_of<T>(5 * c.count), 0,
           [=](CaseMemory& memory) { return backward(memory, kSpread, false); });
  add_case(cases, set, c, "swiglu_backward", name("swiglu_backward and out, far"), bytes_of<T>(6 * c.count), 0,
           [=](CaseMemory& memory) { return backward(memory, kSpread, true); });
  add_case(cases, set, c, "swiglu_backward", name("swiglu_backward and out"), bytes_of<T>(6 * c.count), 0,
           [=](CaseMemory& memory) { return backward(memory, 6.0f, true); });
}

template <class T>
void add_columns(const ColumnsCase& c, CaseSet set, std::vector<OpCase>& cases) {
  const int64_t count = c.rows * c.width;
  const auto name = [&](const char* op) {
    return fmt::format("{} {} {}x{} segment {}{}", op, type_name<T>(), c.rows, c.width, c.segment, name_of(c.values));
  };
  const int64_t blocks = row_blocks(c.rows, c.segment);
  add_case(cases, set, c, "rmsnorm_backward", name("rmsnorm_backward"), bytes_of<T>(3 * count), 0, [=](CaseMemory& memory) {
    RmsNormBackward<T> args{.rows = c.rows, .width = c.width, .segment = c.segment};
    args.dx = memory.in_out<T>("dx", count);
    args.dy = args.dx;
    args.x = memory.input<T>(count);
    args.weight = memory.input<float>(c.width);
    args.rstd = memory.positive(c.rows);
    args.chains = memory.output<float>("chains", 2 * blocks * c.width);
    return units_of<T>(blocks, args, &TypedForms<T>::rmsnorm_backward, rmsnorm_backward<T>);
  });
  add_case(cases, set, c, "bias_grad", name("bias_grad"), bytes_of<T>(count), 0, [=](CaseMemory& memory) {
    BiasGrad<T> args{.rows = c.rows, .width = c.width, .segment = c.segment};
    args.dy = memory.input<T>(count);
    args.grad = memory.in_out<float>("grad", c.width);
    return units_of<T>(c.width, args, &TypedForms<T>::bias_grad, bias_grad<T>);
  });
  const double embedding_bytes = bytes_of<T>(count) + bytes_of<float>(2 * count);
  add_case(cases, set, c, "embedding_grad", name("embedding_grad"), embedding_bytes, 0, [=](CaseMemory& memory) {
    EmbeddingGrad<T> args{.rows = c.rows, .width = c.width};
    args.dy = memory.input<T>(count);
    args.tokens = memory.integers(c.rows, 0, static_cast<int32_t>(c.vocab));
    args.grad = memory.in_out<float>("grad", c.vocab * c.width);
    return units_of<T>(c.width, args, &TypedForms<T>::embedding_grad, embedding_grad<T>);
  });
}

void add_norm_weights(const ColumnsCase& c, CaseSet set, std::vector<OpCase>& cases) {
  const int64_t blocks = row_blocks(c.rows, c.segment);
  const std::string name = fmt::format("norm_weight_grad {} blocks of {}{}", blocks, c.width, name_of(c.values));
  add_case(cases, set, c, "norm_weight_grad", name, bytes_of<float>(2 * blocks * c.width), 0, [=](CaseMemory& memory) {
    NormWeightGrad args{.blocks = blocks, .width = c.width};
    args.chains = memory.input<float>(2 * blocks * c.width);
    args.grad = memory.in_out<float>("grad", c.width);
    return units_of(c.width, args, &Table::norm_weight_grad, norm_weight_grad);
  });
}

#define DZ_CASES(T)                                                                 \
  template void add_norms<T>(const RowsCase&, CaseSet, std::vector<OpCase>&);       \
  template void add_ropes<T>(const RopeCase&, CaseSet, std::vector<OpCase>&);       \
  template void add_swiglus<T>(const ElementsCase&, CaseSet, std::vector<OpCase>&); \
  template void add_columns<T>(const ColumnsCase&, CaseSet, std::vector<OpCase>&);
DZ_CASES(bf16)
DZ_CASES(float)
#undef DZ_CASES

void add_row_cases(CaseSet set, std::vector<OpCase>& cases) {
  for (const RowsCase& c : kRowsCases) {
    add_norms<bf16>(c, set, cases);
    add_norms<float>(c, set, cases);
  }
  for (const RopeCase& c : kRopeCases) {
    add_ropes<bf16>(c, set, cases);
    add_ropes<float>(c, set, cases);
  }
  for (const ElementsCase& c : kElementsCases) {
    add_swiglus<bf16>(c, set, cases);
    add_swiglus<float>(c, set, cases);
  }
}

void add_column_cases(CaseSet set, std::vector<OpCase>& cases) {
  for (const ColumnsCase& c : kColumnsCases) {
    add_columns<bf16>(c, set, cases);
    add_columns<float>(c, set, cases);
    add_norm_weights(c, set, cases);
  }
}

}  // namespace dz::kernels
