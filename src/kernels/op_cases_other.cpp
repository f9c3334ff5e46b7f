// Cases of attention, loss and optimizer state.
#include <fmt/format.h>

#include <algorithm>

#include "kernels/op_memory.h"

namespace dz::kernels {
namespace {

AttentionShape shape_of(const AttentionCase& c, CaseMemory& memory) {
  AttentionShape shape{.instances = c.instances,
                       .keys = c.keys,
                       .first_query = c.first_query,
                       .heads = c.heads,
                       .kv_heads = c.kv_heads,
                       .head_dim = c.head_dim,
                       .window = c.window};
  if (c.documents) {
    // Documents of one to forty positions, so that borders fall inside tiles and on their edges.
    int32_t* first = memory.integers(c.instances * c.keys, 0, 40);
    for (int64_t instance = 0; instance < c.instances; ++instance) {
      int32_t* row = first + instance * c.keys;
      int32_t begin = 0;
      for (int32_t i = 0; i < c.keys; ++i) {
        if (row[i] == 0) begin = i;
        row[i] = begin;
      }
    }
    shape.first_visible = first;
  }
  return shape;
}

// The products' multiply-adds over visible pairs, counted twice; masked pairs inside a tile are work that nobody asked for.
double attention_flops(const AttentionCase& c, int products) {
  double pairs = 0;
  for (int64_t i = c.first_query; i < c.keys; ++i) pairs += static_cast<double>(c.window > 0 ? std::min(c.window, i + 1) : i + 1);
  return 2.0 * products * static_cast<double>(c.instances * c.heads * c.head_dim) * pairs;
}

template <class T>
AttentionForward<T> forward_args(const AttentionCase& c, CaseMemory& memory, bool compared) {
  AttentionForward<T> args;
  const int64_t queries = c.instances * (c.keys - c.first_query), keys = c.instances * c.keys;
  args.q = memory.input<T>(queries * c.heads * c.head_dim);
  args.k = memory.input<T>(keys * c.kv_heads * c.head_dim, 3.0f * c.spread);
  args.v = memory.input<T>(keys * c.kv_heads * c.head_dim);
  args.shape = shape_of(c, memory);
  if (compared) {
    args.out = memory.output<T>("out", queries * c.heads * c.head_dim);
    args.row_max = memory.output<float>("row_max", queries * c.heads);
    args.row_scale = memory.output<float>("row_scale", queries * c.heads);
  } else {
    args.out = memory.input<T>(queries * c.heads * c.head_dim);
    args.row_max = memory.input<float>(queries * c.heads);
    args.row_scale = memory.input<float>(queries * c.heads);
  }
  return args;
}

// Backward starts from what the scalar forward left.
template <class T>
PreparedCase backward_case(const AttentionCase& c, CaseMemory& memory) {
  const AttentionForward<T> forward = forward_args<T>(c, memory, false);
  const int64_t tiles = (c.keys + kAttentionTile - 1) / kAttentionTile;
  if (c.set != CaseSet::kBench) forms<T>(table_of(Isa::kScalar)).attention_forward(forward, 0, c.instances * c.heads * tiles);
  AttentionBackward<T> args{.shape = forward.shape, .q = forward.q, .k = forward.k, .v = forward.v, .out = forward.out};
  args.row_max = forward.row_max;
  args.row_scale = forward.row_scale;
  const int64_t keys = c.instances * c.keys;
  args.dout = memory.input<T>(keys * c.heads * c.head_dim);
  args.dq = memory.output<float>("dq", keys * c.heads * c.head_dim);
  args.dk = memory.output<float>("dk", keys * c.kv_heads * c.head_dim);
  args.dv = memory.output<T>("dv", keys * c.kv_heads * c.head_dim);
  return units_of<T>(c.instances * c.kv_heads, args, &TypedForms<T>::attention_backward, attention_backward<T>);
}

template <class T>
void add_attentions(const AttentionCase& c, CaseSet set, std::vector<OpCase>& cases) {
  const auto name = [&](const char* op) {
    return fmt::format("{} {} {}x{} from {} heads {}/{} dim {} window {}{}{}", op, type_name<T>(), c.instances, c.keys, c.first_query, c.heads,
                       c.kv_heads, c.head_dim, c.window, c.documents ? " documents" : "", c.spread > 1 ? " spread" : name_of(c.values));
  };
  add_case(cases, set, c, "attention_forward", name("attention_forward"), 0, attention_flops(c, 2), [c](CaseMemory& memory) {
    const int64_t tiles = (c.keys - 1) / kAttentionTile - c.first_query / kAttentionTile + 1;
    return units_of<T>(c.instances * c.heads * tiles, forward_args<T>(c, memory, true), &TypedForms<T>::attention_forward, attention_forward<T>);
  });
  if (c.first_query > 0) return;
  add_case(cases, set, c, "attention_backward", name("attention_backward"), 0, attention_flops(c, 5),
           [c](CaseMemory& memory) { return backward_case<T>(c, memory); });
}

}  // namespace

template <class T>
void add_losses(const LossCase& c, CaseSet set, std::vector<OpCase>& cases) {
  const int64_t count = c.rows * c.vocab;
  const double bytes = static_cast<double>(count) * (sizeof(float) + (c.gradient ? sizeof(T) : 0));
  const std::string name =
      fmt::format("cross_entropy {} {}x{}{}{}", type_name<T>(), c.rows, c.vocab, c.gradient ? "" : " loss only", name_of(c.values));
  add_case(cases, set, c, "cross_entropy", name, bytes, 0, [c, count](CaseMemory& memory) {
    CrossEntropy<T> args{.rows = c.rows, .vocab = c.vocab, .weight = 0.37f, .z_loss = c.z_loss};
    args.logits = memory.input<float>(count, 9.0f);
    args.gradient = c.gradient;
    int32_t* targets = memory.integers(c.rows, kMasked, static_cast<int32_t>(c.vocab));
    targets[c.rows / 2] = static_cast<int32_t>(count / 2 % c.vocab);  // the element that a fault changes decides a loss
    args.targets = targets;
    args.ce = memory.output<float>("ce", c.rows);
    args.z = memory.output<float>("z", c.rows);
    if (c.gradient) memory.changed("dlogits and exponentials", args.dlogits(), args.dlogits_stride() * c.rows);
    return units_of<T>(c.rows, args, &TypedForms<T>::cross_entropy, cross_entropy<T>);
  });
}

void add_states(const ElementsCase& c, CaseSet set, std::vector<OpCase>& cases) {
  const auto name = [&](const char* op) { return fmt::format("{} {}{}", op, c.count, name_of(c.values)); };
  const double bytes = static_cast<double>(c.count) * sizeof(float);
  for (const int more : {0, 1, 2, 3}) {
    add_case(cases, set, c, "add", name("add") + (more > 0 ? fmt::format(" of {} terms", 2 + more) : ""), (3 + more) * bytes, 0,
             [c, more](CaseMemory& memory) {
               Add args{.count = c.count};
               args.b = memory.input<float>(c.count);
               args.a = memory.in_out<float>("a", c.count);
               const float** terms = memory.pointers(more);
               for (int i = 0; i < more; ++i) terms[i] = memory.input<float>(c.count);
               args.more = terms;
               args.more_count = more;
               return units_of(c.count, args, &Table::add, add);
             });
  }
  add_case(cases, set, c, "cast_to_bf16", name("cast_to_bf16"), 1.5 * bytes, 0, [c](CaseMemory& memory) {
    CastToBf16 args{.count = c.count};
    memory.last_bit(16);
    args.x = memory.input<float>(c.count);
    args.out = memory.output<bf16>("out", c.count);
    return units_of(c.count, args, &Table::cast_to_bf16, cast_to_bf16);
  });
  add_case(cases, set, c, "squared_norms", name("squared_norms"), bytes, 0, [c](CaseMemory& memory) {
    SquaredNorms args{.count = c.count};
    args.x = memory.input<float>(c.count);
    const int64_t blocks = (c.count + kNormBlock - 1) / kNormBlock;
    args.sums = memory.output<double>("sums", blocks);
    return units_of(blocks, args, &Table::squared_norms, squared_norms);
  });
}

// With an m_take above 1/2 the single form interpolates from the other end.
void add_adamw(const ElementsCase& c, CaseSet set, bool single, float m_take, std::vector<OpCase>& cases) {
  const std::string name = fmt::format("adamw {}{}{}{}", c.count, name_of(c.values), single ? " single" : "", m_take > 0.5f ? " from the end" : "");
  add_case(cases, set, c, "adamw", name, 7 * static_cast<double>(c.count) * sizeof(float), 0, [c, single, m_take](CaseMemory& memory) {
    AdamW args{.count = c.count,
               .single = single,
               .clip = 0.83f,
               .decay = 0.9997f,
               .m_keep = 1.0f - m_take,
               .m_take = m_take,
               .v_keep = 0.95f,
               .v_take = 0.05f,
               .sqrt_bc2 = 0.71f,
               .eps = 1e-8f,
               .step = -3e-3f};
    args.gradient = memory.input<float>(c.count);
    args.p = memory.in_out<float>("p", c.count);
    args.m = memory.in_out<float>("m", c.count);
    args.v = memory.in_out<float>("v", c.count);
    if (c.values != OpValues::kSpecial) {
      for (int64_t i = 0; i < c.count; ++i) args.v[i] = args.v[i] < 0 ? -args.v[i] : args.v[i];
    }
    return units_of(c.count, args, &Table::adamw, adamw);
  });
}

template void add_losses<bf16>(const LossCase&, CaseSet, std::vector<OpCase>&);
template void add_losses<float>(const LossCase&, CaseSet, std::vector<OpCase>&);

void add_attention_cases(CaseSet set, std::vector<OpCase>& cases) {
  for (const AttentionCase& c : kAttentionCases) {
    add_attentions<bf16>(c, set, cases);
    add_attentions<float>(c, set, cases);
  }
}

void add_loss_cases(CaseSet set, std::vector<OpCase>& cases) {
  for (const LossCase& c : kLossCases) {
    add_losses<bf16>(c, set, cases);
    add_losses<float>(c, set, cases);
  }
}

void add_state_cases(CaseSet set, std::vector<OpCase>& cases) {
  for (const ElementsCase& c : kElementsCases) {
    add_states(c, set, cases);
    add_adamw(c, set, false, 0.1f, cases);
    add_adamw(c, set, true, 0.1f, cases);
    add_adamw(c, set, true, 0.7f, cases);
  }
}

}  // namespace dz::kernels
