#include "kernels/table.h"

#include <atomic>

#include "base/check.h"
#include "kernels/ref/ref.h"

namespace dz::kernels {
namespace {

std::atomic<const Table*> g_active{nullptr};

Table make_scalar() {
  Table table;
  ref::fill(table);
  return table;
}

}  // namespace

std::string_view name_of(Isa isa) {
  switch (isa) {
    case Isa::kScalar: return "scalar";
    case Isa::kAvx2: return "avx2";
    case Isa::kAvx512: return "avx512";
    case Isa::kAvx512Bf16: return "avx512_bf16";
    case Isa::kAmx: return "amx";
  }
  return "unknown";
}

bool cpu_has(Isa isa) { return isa == Isa::kScalar; }

std::vector<Isa> available() { return {Isa::kScalar}; }

const Table& table_of(Isa isa) {
  DZ_CHECK(cpu_has(isa), "isa", name_of(isa));
  static const Table scalar = make_scalar();
  return scalar;
}

const Table& active() {
  const Table* table = g_active.load(std::memory_order_acquire);
  return table != nullptr ? *table : table_of(Isa::kScalar);
}

void activate(Isa isa) { g_active.store(&table_of(isa), std::memory_order_release); }

}  // namespace dz::kernels
