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

namespace dz {
class ThreadPool;
}

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
  std::function<void(ThreadPool& pool)> run_on;  // by the active table, cut into units as in a training step
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

// Sizes of a training step, for the ops that memory bounds.
struct PassShape {
  int64_t rows = 0;       // tokens of a micro-batch
  int64_t loss_rows = 0;  // of a chunk of logits
  int64_t seq = 0;
  int64_t width = 0, heads = 0, head_dim = 0, d_ff = 0, vocab = 0;
  int64_t state = 0;  // elements of a tensor of the optimizer

  PassShape scaled(double factor) const;  // fewer rows and elements, at least one; the same widths
};

// Every such op once, by compute type bf16 or f32. The order depends on neither shape nor type.
std::vector<OpCase> pass_cases(const PassShape& shape, DType dtype);

// Empty when equal bit for bit (two NaNs are equal), else where the first difference is, with both values.
std::string first_difference(const PreparedCase& a, const PreparedCase& b);

}  // namespace dz::kernels
