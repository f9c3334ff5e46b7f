// The cases of the matrix product: one table for the start-up self-test, `doctor`, the tests and the benchmark.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "kernels/table.h"

namespace dz::kernels {

// How the operands lie in memory: n as written, t transposed. A linear layer's forward is nt, its dX nn, its dW tn.
enum class GemmLayout : uint8_t { kNT, kNN, kTN, kTT };

enum class GemmValues : uint8_t {
  kNormal,    // about one
  kWide,      // 60 binary orders apart: cancellation, one addend far above the others
  kTiny,      // products and sums around the smallest normal number: flushing
  kDenormal,  // denormal and -0 inputs among small ones
  kSpecial,   // a few inf, NaN, -0, largest finite
  kZeros,     // +0 and -0
};

struct GemmCase {
  int64_t m = 0, n = 0, k = 0;
  GemmLayout layout = GemmLayout::kNT;
  int64_t segment = 0;
  bool accumulate = false;
  bool join = false;
  bool out = false;  // else the result is acc
  bool bias = false;
  bool add_to_out = false;
  GemmValues values = GemmValues::kNormal;
  int64_t padding = 0;  // elements between rows, of every operand
  bool quick = false;   // part of the start-up self-test
  const char* note = "";
};

std::span<const GemmCase> gemm_cases();
std::string to_string(const GemmCase& gemm_case);

// Deliberate damage, for negative controls: the comparison must notice each.
enum class GemmFault : uint8_t { kNone, kFlipLastBit, kSwapChains, kShiftSegment };

// One case with what the reference makes of it.
template <class T>
class GemmCheck {
 public:
  GemmCheck(const GemmCase& gemm_case, const TypedForms<T>& reference);
  ~GemmCheck();

  // Runs `form` on the same inputs and compares all bytes of what both wrote, the gaps between rows included; two NaNs are equal. The
  // calling thread flushes denormals from here on. T: bf16 or float. `fault` damages the inputs of `form`.
  bool agrees(const TypedForms<T>& form, ThreadPool* pool, GemmFault fault = GemmFault::kNone) const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

}  // namespace dz::kernels
