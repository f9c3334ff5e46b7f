// Cases of every op but the matrix product, made once and used four times: the self-test at start-up, `doctor`, the tests and the benchmark.
// The tables themselves are in op_tables.h; a case is run by any table of forms and its outputs are compared bit by bit.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "kernels/op_tables.h"
#include "kernels/table.h"

namespace dz::kernels {

// A deliberate mistake in the first input of a case, for tests of the tests.
enum class OpFault : uint8_t {
  kNone,
  kLastBit,    // flips the last bit that matters of one element
  kSwapLanes,  // exchanges two neighbouring elements
};

// What a case wrote.
struct CaseOutput {
  std::string name;
  DType dtype = DType::kF32;
  const void* data = nullptr;
  int64_t count = 0;
};

// Inputs and outputs of one case, ready to run. Several copies may run at the same time; one copy may be run by several threads, each its units.
struct PreparedCase {
  int64_t units = 0;
  std::function<void(const Table& table, int64_t begin, int64_t end)> run;
  std::vector<CaseOutput> outputs;
  std::shared_ptr<void> memory;
};

struct OpCase {
  std::string op;    // as in the table: "rmsnorm_forward"
  std::string name;  // op, type, shape, note
  CaseSet set = CaseSet::kFull;
  double bytes = 0;  // read and written once, for GB/s
  double flops = 0;  // of the products of attention, for GFLOP/s; 0: bound by memory
  std::function<PreparedCase(OpFault fault)> prepare;
};

// The cases of a set, in a fixed order. Making the list is cheap; memory is taken by prepare().
std::vector<OpCase> op_cases(CaseSet set);

// Empty when equal bit for bit (two NaNs are equal), else where the first difference is, with both values.
std::string first_difference(const PreparedCase& a, const PreparedCase& b);

}  // namespace dz::kernels
