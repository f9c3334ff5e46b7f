// The cases of the matrix product: one table for the start-up self-test, `doctor`, the tests and the benchmark.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "kernels/table.h"

namespace dz::kernels {

// How the operands lie in memory: n as written, t transposed. A linear layer's forward is nt, its dX nn, its dW tn.
enum class Layout : uint8_t { kNT, kNN, kTN, kTT };

enum class Values : uint8_t {
  kNormal,     // about one
  kWide,       // 60 binary orders apart: cancellation, one addend far above the others
  kTiny,       // products and sums around the smallest normal number: flushing
  kDenormal,   // denormal and -0 inputs among small ones
  kSpecial,    // a few inf, NaN, -0, largest finite
  kZeros,      // +0 and -0
};

struct GemmCase {
  int64_t m = 0, n = 0, k = 0;
  Layout layout = Layout::kNT;
  int64_t segment = 0;
  bool accumulate = false;
  bool out = false;          // else the result is acc
  bool bias = false;
  bool add_to_out = false;
  Values values = Values::kNormal;
  int64_t padding = 0;       // elements between rows, of every operand
  bool quick = false;        // part of the start-up self-test
  const char* note = "";
};

std::span<const GemmCase> gemm_cases();
std::string to_string(const GemmCase& gemm_case);

// Deliberate damage, for negative controls: the comparison must notice each.
enum class Fault : uint8_t { kNone, kFlipLastBit, kSwapChains, kShiftSegment };

// Runs the case with both products on the same inputs and compares all bytes of what they wrote, the gaps between rows included; two NaNs
// are equal. The calling thread flushes denormals meanwhile. T: bf16 or float. `fault` damages the inputs of `form`.
template <class T>
bool gemm_agrees(const GemmCase& gemm_case, const TypedForms<T>& form, const TypedForms<T>& reference, ThreadPool* pool, Fault fault = Fault::kNone);

}  // namespace dz::kernels
