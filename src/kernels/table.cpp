#include "kernels/table.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/check.h"
#include "base/error.h"
#include "kernels/amx/attention.h"
#include "kernels/cpu.h"
#include "kernels/gemm_driver.h"
#include "kernels/ref/ref.h"
#include "kernels/selftest.h"
#include "kernels/simd_ops.h"

namespace dz::kernels {
namespace {

constexpr std::array kAll = {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16, Isa::kAmx};

// A CPU with AMX has AVX512_BF16 too; the matrix product and attention in bf16 have tiles of their own.
void fill_ops(Isa isa, Table& table) {
  if (isa == Isa::kAvx2) {
    avx2::fill_ops(table);
  } else if (isa == Isa::kAvx512) {
    avx512::fill_ops(table);
  } else {
    avx512_bf16::fill_ops(table);
  }
  if (isa == Isa::kAmx) {
    table.bf16_forms.attention_forward = amx::attention_forward;
    table.bf16_forms.attention_backward = amx::attention_backward;
  }
}

Table make_table(Isa isa) {
  Table table;
  ref::fill(table);
  // Only what this CPU has: even entering pointers is code of that instruction set.
  if (isa != Isa::kScalar && cpu_has(isa)) {
    fill_ops(isa, table);
    fill_gemm(isa, table);
  }
  table.isa = isa;
  return table;
}

std::string list_available() {
  std::string list;
  for (const Isa isa : available()) list += (list.empty() ? "" : ", ") + std::string(name_of(isa));
  return list;
}

Isa forced(const std::string& name) {
  for (const Isa isa : kAll) {
    if (name == name_of(isa) && cpu_has(isa)) return isa;
  }
  throw ConfigError({.where = "DZ_ISA",
                     .found = name + ", which is not available on this CPU",
                     .expected = "one of " + list_available(),
                     .hint = "unset DZ_ISA to use the best"});
}

// A forced form never falls back: who asks for one wants its bits or an error.
const Table& choose() {
  const char* wish = std::getenv("DZ_ISA");
  if (wish != nullptr && *wish != '\0') {
    const Table& table = table_of(forced(wish));
    const SelfTestReport report = self_test(table, SelfTestLength::kStartUp, nullptr);
    if (report.ok()) return table;
    throw ConfigError({.where = "DZ_ISA",
                       .found = std::string(wish) + ", which differs from scalar on this CPU: " + report.difference,
                       .expected = "",
                       .hint = "unset DZ_ISA to use the best form that agrees, and report this CPU"});
  }
  const std::vector<Isa> candidates = available();
  for (size_t i = candidates.size(); i-- > 1;) {
    const Table& table = table_of(candidates[i]);
    const SelfTestReport report = self_test(table, SelfTestLength::kStartUp, nullptr);
    if (report.ok()) return table;
    const std::string name(name_of(candidates[i]));
    std::fprintf(stderr, "warning: %s differs from scalar on this CPU and is not used: %s\n", name.c_str(), report.difference.c_str());
  }
  return table_of(Isa::kScalar);
}

std::atomic<const Table*> g_active{nullptr};

}  // namespace

std::string_view name_of(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return "scalar";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAvx512Bf16:
      return "avx512_bf16";
    case Isa::kAmx:
      return "amx";
  }
  return "unknown";
}

bool cpu_has(Isa isa) {
  const CpuFeatures& features = cpu_features();
  switch (isa) {
    case Isa::kScalar:
      return true;
    case Isa::kAvx2:
      return features.avx2;
    case Isa::kAvx512:
      return features.avx512;
    case Isa::kAvx512Bf16:
      return features.avx512_bf16;
    case Isa::kAmx:
      return features.amx;
  }
  return false;
}

std::vector<Isa> available() {
  std::vector<Isa> found;
  for (const Isa isa : kAll) {
    if (cpu_has(isa)) found.push_back(isa);
  }
  return found;
}

const Table& table_of(Isa isa) {
  DZ_CHECK(cpu_has(isa), "isa", name_of(isa));
  static const std::array<Table, kAll.size()> tables = {make_table(Isa::kScalar), make_table(Isa::kAvx2), make_table(Isa::kAvx512),
                                                        make_table(Isa::kAvx512Bf16), make_table(Isa::kAmx)};
  return tables[static_cast<size_t>(isa)];
}

const Table& active() {
  const Table* table = g_active.load(std::memory_order_acquire);
  if (table == nullptr) {
    static const Table& chosen = choose();
    // activate() may have come first; then it holds.
    if (g_active.compare_exchange_strong(table, &chosen, std::memory_order_acq_rel)) table = &chosen;
  }
  return *table;
}

void activate(Isa isa) { g_active.store(&table_of(isa), std::memory_order_release); }

}  // namespace dz::kernels
