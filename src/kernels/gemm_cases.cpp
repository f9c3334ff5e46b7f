#include "kernels/gemm_cases.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "numerics/rounding.h"

namespace dz::kernels {
namespace {

constexpr GemmCase kCases[] = {
    {.m = 1, .n = 1, .k = 1, .quick = true},
    {.m = 1, .n = 1, .k = 0, .accumulate = true, .note = "empty sum"},
    {.m = 3, .n = 5, .k = 0, .out = true, .bias = true, .note = "empty sum, bias"},
    {.m = 5, .n = 37, .k = 33, .layout = GemmLayout::kNT, .padding = 3, .quick = true, .note = "one past a block"},
    {.m = 5, .n = 37, .k = 31, .layout = GemmLayout::kNN, .padding = 1, .quick = true},
    {.m = 19, .n = 40, .k = 95, .layout = GemmLayout::kTN, .padding = 5, .quick = true},
    {.m = 19, .n = 33, .k = 64, .layout = GemmLayout::kTT, .quick = true},
    {.m = 17,
     .n = 65,
     .k = 100,
     .layout = GemmLayout::kTN,
     .segment = 50,
     .accumulate = true,
     .quick = true,
     .note = "blocks restart at an instance"},
    {.m = 33, .n = 31, .k = 129, .layout = GemmLayout::kTN, .segment = 43, .accumulate = true, .padding = 2},
    {.m = 9, .n = 20, .k = 70, .layout = GemmLayout::kTT, .segment = 64, .note = "short last segment"},
    {.m = 21, .n = 50, .k = 70, .layout = GemmLayout::kNN, .segment = 1000, .note = "segment longer than k"},
    {.m = 16, .n = 32, .k = 24, .layout = GemmLayout::kNT, .out = true, .quick = true, .note = "head_dim 24"},
    {.m = 1, .n = 100, .k = 96, .layout = GemmLayout::kNT, .out = true, .bias = true, .quick = true, .note = "decoding"},
    {.m = 1, .n = 700, .k = 300, .layout = GemmLayout::kNT, .out = true, .note = "decoding, columns cut"},
    {.m = 1, .n = 16, .k = 64, .layout = GemmLayout::kNT, .values = GemmValues::kWide, .quick = true, .note = "few rows, one call"},
    {.m = 2, .n = 47, .k = 65, .layout = GemmLayout::kNT, .out = true, .bias = true, .add_to_out = true, .padding = 5, .quick = true},
    {.m = 3, .n = 18, .k = 20, .layout = GemmLayout::kNT, .out = true, .padding = 1, .note = "few rows, no whole block"},
    {.m = 15, .n = 79, .k = 130, .layout = GemmLayout::kNT, .values = GemmValues::kWide, .quick = true, .note = "few rows"},
    {.m = 16, .n = 96, .k = 96, .layout = GemmLayout::kNT, .out = true, .values = GemmValues::kTiny, .quick = true, .note = "most of few rows"},
    {.m = 17, .n = 96, .k = 96, .layout = GemmLayout::kNT, .out = true, .bias = true, .note = "one row too many for few"},
    {.m = 16, .n = 33, .k = 75, .layout = GemmLayout::kNT, .padding = 2, .note = "few rows, odd columns"},
    {.m = 4, .n = 50, .k = 96, .layout = GemmLayout::kNT, .values = GemmValues::kSpecial},
    {.m = 5, .n = 50, .k = 70, .layout = GemmLayout::kNT, .out = true, .add_to_out = true, .values = GemmValues::kDenormal, .quick = true},
    {.m = 6, .n = 34, .k = 45, .layout = GemmLayout::kNT, .values = GemmValues::kZeros, .note = "few rows, -0 meets padding"},
    {.m = 2, .n = 40, .k = 96, .layout = GemmLayout::kNT, .segment = 40, .note = "few rows in segments"},
    {.m = 3, .n = 1003, .k = 2100, .layout = GemmLayout::kNT, .out = true, .bias = true, .note = "few rows, several threads"},
    {.m = 7, .n = 33, .k = 40, .layout = GemmLayout::kNN, .out = true, .add_to_out = true, .quick = true, .note = "joins the residual gradient"},
    {.m = 13,
     .n = 47,
     .k = 60,
     .layout = GemmLayout::kNN,
     .accumulate = true,
     .out = true,
     .bias = true,
     .add_to_out = true,
     .padding = 4,
     .quick = true},
    {.m = 20, .n = 30, .k = 90, .layout = GemmLayout::kNT, .accumulate = true, .values = GemmValues::kWide, .quick = true},
    {.m = 20, .n = 40, .k = 90, .layout = GemmLayout::kNN, .values = GemmValues::kTiny, .quick = true},
    {.m = 20, .n = 40, .k = 90, .layout = GemmLayout::kTN, .out = true, .values = GemmValues::kTiny, .quick = true},
    {.m = 20, .n = 40, .k = 66, .layout = GemmLayout::kNT, .values = GemmValues::kDenormal, .quick = true},
    {.m = 20, .n = 40, .k = 66, .layout = GemmLayout::kTN, .accumulate = true, .out = true, .values = GemmValues::kDenormal},
    {.m = 12, .n = 48, .k = 45, .layout = GemmLayout::kNT, .values = GemmValues::kZeros, .quick = true, .note = "-0 meets padding"},
    {.m = 12, .n = 48, .k = 64, .layout = GemmLayout::kTN, .accumulate = true, .values = GemmValues::kZeros},
    {.m = 12, .n = 48, .k = 64, .layout = GemmLayout::kTN, .join = true, .values = GemmValues::kZeros},
    {.m = 20, .n = 30, .k = 90, .layout = GemmLayout::kTN, .join = true, .values = GemmValues::kWide, .padding = 2, .quick = true},
    {.m = 3, .n = 70, .k = 66, .layout = GemmLayout::kNT, .join = true, .values = GemmValues::kDenormal, .note = "few rows join"},
    {.m = 24, .n = 40, .k = 80, .layout = GemmLayout::kNT, .values = GemmValues::kSpecial, .quick = true},
    {.m = 24,
     .n = 40,
     .k = 80,
     .layout = GemmLayout::kTN,
     .accumulate = true,
     .out = true,
     .bias = true,
     .add_to_out = true,
     .values = GemmValues::kSpecial,
     .quick = true},
    {.m = 64, .n = 64, .k = 64, .layout = GemmLayout::kNN, .note = "attention tile"},
    {.m = 65, .n = 129, .k = 256, .layout = GemmLayout::kNT, .out = true, .values = GemmValues::kWide, .note = "past the small product"},
    {.m = 129, .n = 97, .k = 300, .layout = GemmLayout::kTN, .segment = 100, .accumulate = true, .padding = 7, .note = "panels, segments"},
    {.m = 300, .n = 70, .k = 70, .layout = GemmLayout::kNN, .out = true, .add_to_out = true, .values = GemmValues::kSpecial, .note = "several tasks"},
    {.m = 40, .n = 300, .k = 520, .layout = GemmLayout::kNT, .out = true, .bias = true, .values = GemmValues::kTiny},
    {.m = 1100, .n = 33, .k = 40, .layout = GemmLayout::kTT, .note = "tall"},
    {.m = 35,
     .n = 40,
     .k = 4200,
     .layout = GemmLayout::kTN,
     .segment = 700,
     .accumulate = true,
     .values = GemmValues::kWide,
     .note = "several groups of k"},
    {.m = 70, .n = 1300, .k = 2100, .layout = GemmLayout::kNT, .out = true, .padding = 1, .note = "several groups of columns and k"},
    {.m = 40,
     .n = 66,
     .k = 4200,
     .layout = GemmLayout::kNN,
     .accumulate = true,
     .out = true,
     .bias = true,
     .add_to_out = true,
     .note = "several groups of k, then the output"},
    {.m = 600, .n = 45, .k = 2100, .layout = GemmLayout::kTN, .segment = 700, .accumulate = true, .note = "several parts of rows, groups of k"},
    {.m = 290, .n = 45, .k = 2100, .layout = GemmLayout::kTN, .out = true, .padding = 3, .note = "sums of several groups in a buffer, rows held"},
    {.m = 129,
     .n = 97,
     .k = 300,
     .layout = GemmLayout::kTN,
     .segment = 100,
     .join = true,
     .values = GemmValues::kWide,
     .padding = 7,
     .note = "one group joins"},
    {.m = 290, .n = 45, .k = 2100, .layout = GemmLayout::kTN, .join = true, .values = GemmValues::kSpecial, .note = "several groups of k join"},
    {.m = 800, .n = 290, .k = 1056, .layout = GemmLayout::kTN, .segment = 528, .values = GemmValues::kWide, .note = "parts that share packed pieces"},
    {.m = 100, .n = 66, .k = 4160, .layout = GemmLayout::kNT, .out = true, .values = GemmValues::kWide, .note = "whole rows, groups of k"},
    {.m = 70, .n = 80, .k = 2048, .layout = GemmLayout::kNT, .out = true, .note = "whole rows, a multiple of a page apart"},
};

// A generator of test values, not part of any contract.
struct Mixer {
  uint64_t state;
  uint64_t next() {
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
};

float of_bits(uint32_t sign, uint32_t exponent, uint32_t mantissa) {
  return std::bit_cast<float>((sign << 31) | (exponent << 23) | (mantissa & 0x7fffffu));
}

float value(GemmValues values, Mixer& mixer) {
  const uint64_t r = mixer.next();
  const uint32_t sign = r & 1, mantissa = static_cast<uint32_t>(r >> 20), pick = static_cast<uint32_t>(r >> 1) & 63,
                 spread = static_cast<uint32_t>(r >> 8) & 31;
  switch (values) {
    case GemmValues::kNormal:
      return of_bits(sign, 124 + spread % 4, mantissa);
    case GemmValues::kWide:
      return of_bits(sign, 112 + spread, mantissa);
    case GemmValues::kTiny:
      return of_bits(sign, 58 + spread % 12, mantissa);
    case GemmValues::kDenormal:
      return of_bits(sign, pick < 16 ? 0 : (pick < 24 ? 1 + spread % 4 : 120 + spread % 8), pick < 4 ? 0 : mantissa);
    case GemmValues::kSpecial:
      if (pick > 0) return of_bits(sign, 124 + spread % 4, mantissa);
      return spread < 8    ? of_bits(sign, 255, 0)
             : spread < 12 ? of_bits(sign, 255, 0x400000)
             : spread < 20 ? of_bits(sign, 254, 0x7f0000)
                           : of_bits(sign, 0, 0);
    case GemmValues::kZeros:
      return pick < 60 ? of_bits(sign, 0, 0) : of_bits(sign, 126, 0);
  }
  return 0;
}

// bf16 by cutting, so that denormals stay denormals.
void put(float x, float* out) { *out = x; }
void put(float x, bf16* out) { *out = {static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16)}; }

template <class T>
std::vector<T> fill(int64_t count, GemmValues values, uint64_t seed) {
  Mixer mixer{seed};
  std::vector<T> data(static_cast<size_t>(count));
  for (T& x : data) put(value(values, mixer), &x);
  return data;
}

// The inputs of a case and the product over them; acc and out are what it writes.
template <class T>
struct Problem {
  std::vector<T> a, b, out;
  std::vector<float> acc, bias;
  Gemm<T> product;

  Problem(Problem&&) = default;  // the vectors keep their memory, so `product` stays right
  Problem(const Problem&) = delete;

  explicit Problem(const GemmCase& c) {
    const bool a_transposed = c.layout == GemmLayout::kTN || c.layout == GemmLayout::kTT;
    const bool b_transposed = c.layout == GemmLayout::kNT || c.layout == GemmLayout::kTT;
    const int64_t a_stride = (a_transposed ? c.m : c.k) + c.padding, b_stride = (b_transposed ? c.k : c.n) + c.padding, stride = c.n + c.padding;
    a = fill<T>((a_transposed ? c.k : c.m) * a_stride + 1, c.values, 1);
    b = fill<T>((b_transposed ? c.n : c.k) * b_stride + 1, c.values, 2);
    acc = fill<float>(c.m * stride + 8, c.values, 3);
    out = fill<T>(c.m * stride + 8, c.values, 4);
    bias = fill<float>(c.n, c.values, 5);
    product = {.m = c.m,
               .n = c.n,
               .k = c.k,
               .a = a.data(),
               .a_row = a_transposed ? 1 : a_stride,
               .a_col = a_transposed ? a_stride : 1,
               .b = b.data(),
               .b_row = b_transposed ? 1 : b_stride,
               .b_col = b_transposed ? b_stride : 1,
               .k_segment = c.segment,
               .acc = c.accumulate || !c.out ? acc.data() : nullptr,
               .acc_stride = stride,
               .accumulate = c.accumulate,
               .join = c.join,
               .out = c.out ? out.data() : nullptr,
               .out_stride = stride,
               .bias = c.bias ? bias.data() : nullptr,
               .add_to_out = c.add_to_out};
  }

  void damage(GemmFault fault) {
    if (fault == GemmFault::kFlipLastBit) *reinterpret_cast<unsigned char*>(a.data()) ^= 1;
    if (fault == GemmFault::kSwapChains) {  // the same terms, k + 1 and k + 2 exchanged: two terms of four change chains
      for (int64_t k = 0; k + 2 < product.k; k += 4) {
        for (int64_t i = 0; i < product.m; ++i) swap_next(a, i * product.a_row + (k + 1) * product.a_col, product.a_col);
        for (int64_t j = 0; j < product.n; ++j) swap_next(b, j * product.b_col + (k + 1) * product.b_row, product.b_row);
      }
    }
    if (fault == GemmFault::kShiftSegment) product.k_segment += 1;
  }
  static void swap_next(std::vector<T>& x, int64_t i, int64_t stride) { std::swap(x[static_cast<size_t>(i)], x[static_cast<size_t>(i + stride)]); }
};

bool is_nan(float x) { return (std::bit_cast<uint32_t>(x) & 0x7fffffffu) > 0x7f800000u; }
bool same(float x, float y) { return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y) || (is_nan(x) && is_nan(y)); }
bool same(bf16 x, bf16 y) { return same(numerics::to_float(x), numerics::to_float(y)); }

template <class T>
bool all_same(const std::vector<T>& x, const std::vector<T>& y) {
  if (std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0) return true;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!same(x[i], y[i])) return false;
  }
  return true;
}

}  // namespace

std::span<const GemmCase> gemm_cases() { return kCases; }

std::string to_string(const GemmCase& c) {
  constexpr const char* kLayouts[] = {"nt", "nn", "tn", "tt"};
  constexpr const char* kValues[] = {"normal", "wide", "tiny", "denormal", "special", "zeros"};
  return fmt::format("gemm {}x{}x{} {} {}{}{}{}{}{}{}", c.m, c.n, c.k, kLayouts[static_cast<int>(c.layout)], kValues[static_cast<int>(c.values)],
                     c.segment > 0 ? fmt::format(" segment {}", c.segment) : "", c.accumulate ? " accumulate" : (c.join ? " join" : ""),
                     c.out ? " out" : "", c.bias ? " bias" : "", c.add_to_out ? " add_to_out" : "",
                     c.note[0] != '\0' ? fmt::format(" ({})", c.note) : "");
}

template <class T>
struct GemmCheck<T>::State {
  GemmCase gemm_case;
  Problem<T> expected;
};

template <class T>
GemmCheck<T>::GemmCheck(const GemmCase& gemm_case, const TypedForms<T>& reference) {
  set_flush_to_zero();
  state_.reset(new State{gemm_case, Problem<T>(gemm_case)});
  reference.gemm(state_->expected.product, nullptr);
}

template <class T>
GemmCheck<T>::~GemmCheck() = default;

template <class T>
bool GemmCheck<T>::agrees(const TypedForms<T>& form, ThreadPool* pool, GemmFault fault) const {
  set_flush_to_zero();
  const Problem<T>& expected = state_->expected;
  Problem<T> found(state_->gemm_case);
  found.damage(fault);
  form.gemm(found.product, pool);
  if (state_->gemm_case.out) return all_same(expected.out, found.out);  // acc is scratch then
  return all_same(expected.acc, found.acc) && all_same(expected.out, found.out);
}

template class GemmCheck<bf16>;
template class GemmCheck<float>;

}  // namespace dz::kernels
