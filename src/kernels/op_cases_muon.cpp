// Cases of Muon's elementwise ops, on the counts and values of the other state ops.
#include <fmt/format.h>

#include "kernels/op_memory.h"

namespace dz::kernels {
namespace {

constexpr double kFloat = sizeof(float), kHalf = sizeof(bf16);

// Both formulas of the interpolation, with and without Nesterov.
void add_momentum(const ElementsCase& c, CaseSet set, float momentum, bool nesterov, std::vector<OpCase>& cases) {
  const std::string name = fmt::format("muon_momentum {}{} momentum {}{}", c.count, name_of(c.values), momentum, nesterov ? " nesterov" : "");
  add_case(cases, set, c, "muon_momentum", name, 4 * kFloat * static_cast<double>(c.count), 0, [c, momentum, nesterov](CaseMemory& memory) {
    MuonMomentum args{.count = c.count, .clip = 0.83f, .take = 1.0f - momentum, .momentum = momentum, .nesterov = nesterov};
    args.gradient = memory.input<float>(c.count);
    args.m = memory.in_out<float>("m", c.count);
    args.update = memory.output<float>("update", c.count);
    return units_of(c.count, args, &Table::muon_momentum, muon_momentum);
  });
}

void add_muon(const ElementsCase& c, CaseSet set, std::vector<OpCase>& cases) {
  const auto name = [&](const char* op) { return fmt::format("{} {}{}", op, c.count, name_of(c.values)); };
  const auto count = static_cast<double>(c.count);
  add_momentum(c, set, 0.95f, true, cases);
  add_momentum(c, set, 0.95f, false, cases);
  add_momentum(c, set, 0.4f, true, cases);
  add_case(cases, set, c, "muon_normalize", name("muon_normalize"), (kFloat + kHalf) * count, 0, [c](CaseMemory& memory) {
    MuonNormalize args{.count = c.count, .norm = 3.171875f};
    memory.last_bit(16);
    args.x = memory.input<float>(c.count);
    args.out = memory.output<bf16>("out", c.count);
    return units_of(c.count, args, &Table::muon_normalize, muon_normalize);
  });
  add_case(cases, set, c, "muon_combine", name("muon_combine"), (kFloat + 2 * kHalf) * count, 0, [c](CaseMemory& memory) {
    MuonCombine args{.count = c.count, .x_scale = -4.775f, .acc_scale = 2.0315f};
    args.x = memory.input<bf16>(c.count);
    args.acc = memory.input<float>(c.count);
    args.out = memory.output<bf16>("out", c.count);
    return units_of(c.count, args, &Table::muon_combine, muon_combine);
  });
  add_case(cases, set, c, "muon_apply", name("muon_apply"), (2 * kFloat + kHalf) * count, 0, [c](CaseMemory& memory) {
    MuonApply args{.count = c.count, .decay = 0.998f, .step = -0.021f};
    args.x = memory.input<bf16>(c.count);
    args.p = memory.in_out<float>("p", c.count);
    return units_of(c.count, args, &Table::muon_apply, muon_apply);
  });
}

}  // namespace

void add_muon_cases(CaseSet set, std::vector<OpCase>& cases) {
  for (const ElementsCase& c : kElementsCases) add_muon(c, set, cases);
}

}  // namespace dz::kernels
