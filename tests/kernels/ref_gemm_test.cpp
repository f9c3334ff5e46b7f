// The scalar product against a literal transcription of the contract's order: one pass over k, no tiles, no packing.
#include <gtest/gtest.h>

#include "kernels/ref_support.h"
#include "numerics/functions.h"

namespace dz::kernels::test {
namespace {

using numerics::to_float;

enum class Order { kContract, kOddFirst, kOneChain, kReversed, kUnpadded };

// acc + (even + odd) for the block of `depth` pairs at a, b; volatile keeps each rounding where it is written.
float block_sum(const std::vector<float>& a, const std::vector<float>& b, float acc, Order order) {
  const size_t size = order == Order::kUnpadded ? a.size() : 32;
  volatile float even = 0, odd = 0;
  for (size_t step = 0; step < size; ++step) {
    const size_t k = order == Order::kReversed ? size - 1 - step : step;
    const float x = k < a.size() ? a[k] : 0.0f, y = k < b.size() ? b[k] : 0.0f;
    if (k % 2 == 0 || order == Order::kOneChain) {
      even = numerics::fma(x, y, float{even});
    } else {
      odd = numerics::fma(x, y, float{odd});
    }
  }
  if (order == Order::kOddFirst) {
    volatile float first = acc + odd;
    volatile float both = first + even;
    return both;
  }
  volatile float both = even + odd;
  volatile float sum = acc + both;
  return sum;
}

template <class T>
std::vector<float> literal(const Gemm<T>& g, const std::vector<float>& start, Order order) {
  std::vector<float> acc = start;
  const int64_t segment = g.k_segment > 0 ? g.k_segment : g.k;
  for (int64_t i = 0; i < g.m; ++i) {
    for (int64_t j = 0; j < g.n; ++j) {
      float& value = acc[static_cast<size_t>(i * g.n + j)];
      std::vector<float> a, b;
      for (int64_t k = 0; k < g.k; ++k) {
        a.push_back(to_float(g.a[i * g.a_row + k * g.a_col]));
        b.push_back(to_float(g.b[k * g.b_row + j * g.b_col]));
        const int64_t inside = k % segment;
        if (inside % 32 == 31 || inside == segment - 1 || k == g.k - 1) {
          value = block_sum(a, b, value, order);
          a.clear();
          b.clear();
        }
      }
    }
  }
  return acc;
}

struct GemmCase {
  int64_t m, n, k, segment;
  bool a_transposed, b_transposed;
};
constexpr GemmCase kCases[] = {{1, 1, 1, 0, false, false},   {3, 5, 31, 0, false, true},   {2, 3, 32, 0, true, false},  {65, 66, 33, 0, false, false},
                               {7, 70, 100, 0, true, true},  {5, 9, 120, 40, true, false}, {4, 4, 99, 33, true, false}, {130, 3, 64, 0, false, true},
                               {24, 24, 24, 0, false, true}, {2, 2, 257, 64, true, true}};

template <class T>
struct Problem {
  std::vector<T> a, b;
  std::vector<float> start, acc;
  Gemm<T> g;
};

template <class T>
Problem<T> make(const GemmCase& c, float scale = 1.0f) {
  Values values(static_cast<uint64_t>(c.m * 1000 + c.k));
  Problem<T> p{.a = values.make<T>(c.m * c.k, scale),
               .b = values.make<T>(c.k * c.n, scale),
               .start = values.make<float>(c.m * c.n, scale * scale),
               .acc = {},
               .g = {}};
  p.acc = p.start;
  p.g = {.m = c.m,
         .n = c.n,
         .k = c.k,
         .a = p.a.data(),
         .a_row = c.a_transposed ? 1 : c.k,
         .a_col = c.a_transposed ? c.m : 1,
         .b = p.b.data(),
         .b_row = c.b_transposed ? 1 : c.n,
         .b_col = c.b_transposed ? c.k : 1,
         .k_segment = c.segment,
         .acc = p.acc.data(),
         .acc_stride = c.n,
         .accumulate = true};
  return p;
}

template <class T>
class RefGemm : public testing::Test {};
using Types = testing::Types<bf16, float>;
TYPED_TEST_SUITE(RefGemm, Types);

TYPED_TEST(RefGemm, JoiningAddsTheFinishedSumToWhatWasThere) {
  bool differs = false;
  for (const GemmCase& c : kCases) {
    Problem<TypeParam> p = make<TypeParam>(c);
    std::vector<float> expected = literal(p.g, std::vector<float>(p.start.size(), 0.0f), Order::kContract);
    for (size_t i = 0; i < expected.size(); ++i) {
      volatile float sum = p.start[i] + expected[i];
      expected[i] = sum;
    }
    differs = differs || !same_bits(expected, literal(p.g, p.start, Order::kContract));  // a chain that goes on is another sum
    p.g.accumulate = false;
    p.g.join = true;
    forms<TypeParam>(scalar()).gemm(p.g, nullptr);
    EXPECT_TRUE(same_bits(p.acc, expected)) << c.m << " x " << c.n << " x " << c.k;
  }
  EXPECT_TRUE(differs);
}

TYPED_TEST(RefGemm, FollowsTheOrderOfTheContract) {
  for (const GemmCase& c : kCases) {
    for (const float scale : {1.0f, 1e-19f, 1e-20f}) {  // the small ones reach the flush to zero
      Problem<TypeParam> p = make<TypeParam>(c, scale);
      forms<TypeParam>(scalar()).gemm(p.g, nullptr);
      EXPECT_TRUE(same_bits(p.acc, literal(p.g, p.start, Order::kContract))) << c.m << " x " << c.n << " x " << c.k << " scale " << scale;
    }
  }
}

TYPED_TEST(RefGemm, AnotherOrderIsNoticed) {
  Problem<TypeParam> p = make<TypeParam>({7, 70, 100, 0, false, false});
  forms<TypeParam>(scalar()).gemm(p.g, nullptr);
  for (const Order order : {Order::kOddFirst, Order::kOneChain, Order::kReversed}) {
    EXPECT_FALSE(same_bits(p.acc, literal(p.g, p.start, order))) << static_cast<int>(order);
  }
}

TYPED_TEST(RefGemm, PaddingTurnsMinusZeroIntoPlusZero) {
  // A product that underflows to -0 in both chains, and an accumulator of -0: only the padding makes the sum +0.
  const TypeParam tiny = numerics::round_to<TypeParam>(0x1p-80f), negative = numerics::round_to<TypeParam>(-0x1p-80f);
  const std::vector<TypeParam> a(2, tiny), b(2, negative);
  std::vector<float> acc = {-0.0f};
  const Gemm<TypeParam> g{.m = 1,
                          .n = 1,
                          .k = 2,
                          .a = a.data(),
                          .a_row = 2,
                          .b = b.data(),
                          .b_row = 1,
                          .b_col = 1,
                          .acc = acc.data(),
                          .acc_stride = 1,
                          .accumulate = true};
  const std::vector<float> start = acc;
  forms<TypeParam>(scalar()).gemm(g, nullptr);
  EXPECT_EQ(bits(acc[0]), 0u);
  EXPECT_EQ(bits(literal(g, start, Order::kContract)[0]), 0u);
  EXPECT_EQ(bits(literal(g, start, Order::kUnpadded)[0]), 0x80000000u);
}

TYPED_TEST(RefGemm, OutputAddsBiasThenResidualAndRoundsOnce) {
  const GemmCase c{5, 67, 40, 0, false, true};
  Problem<TypeParam> p = make<TypeParam>(c);
  const std::vector<float> sums = literal(p.g, std::vector<float>(p.start.size(), 0.0f), Order::kContract);
  Values values(9);
  const std::vector<float> bias = values.make<float>(c.n);
  std::vector<TypeParam> out = values.make<TypeParam>(c.m * c.n);
  std::vector<TypeParam> expected = out;
  for (int64_t i = 0; i < c.m * c.n; ++i) {
    const auto at = static_cast<size_t>(i);
    expected[at] = numerics::round_to<TypeParam>(to_float(expected[at]) + (sums[at] + bias[static_cast<size_t>(i % c.n)]));
  }
  Gemm<TypeParam> g = p.g;
  g.acc = nullptr;
  g.accumulate = false;
  g.out = out.data();
  g.out_stride = c.n;
  g.bias = bias.data();
  g.add_to_out = true;
  forms<TypeParam>(scalar()).gemm(g, nullptr);
  EXPECT_TRUE(same_bits(out, expected));
}

TYPED_TEST(RefGemm, ThreadsAndInfinitiesMoveNoBit) {
  Problem<TypeParam> p = make<TypeParam>({70, 130, 70, 35, true, false});
  p.a[3] = numerics::round_to<TypeParam>(INFINITY);
  p.b[5] = numerics::round_to<TypeParam>(NAN);
  std::vector<float> first;
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    p.acc = p.start;
    p.g.acc = p.acc.data();
    gemm(p.g, pool);
    if (first.empty()) first = p.acc;
    for (size_t i = 0; i < first.size(); ++i) {
      ASSERT_TRUE(bits(first[i]) == bits(p.acc[i]) || (std::isnan(first[i]) && std::isnan(p.acc[i]))) << i;
    }
  }
  EXPECT_TRUE(std::isnan(first[5]));
}

TYPED_TEST(RefGemm, AgreesWithFloat64) {
  Problem<TypeParam> p = make<TypeParam>({33, 40, 1000, 0, false, true});
  forms<TypeParam>(scalar()).gemm(p.g, nullptr);
  std::vector<double> exact = doubles(p.start);
  for (int64_t i = 0; i < p.g.m; ++i) {
    for (int64_t j = 0; j < p.g.n; ++j) {
      for (int64_t k = 0; k < p.g.k; ++k)
        exact[static_cast<size_t>(i * p.g.n + j)] += double{to_float(p.g.a[i * p.g.a_row + k])} * double{to_float(p.g.b[k + j * p.g.b_col])};
    }
  }
  EXPECT_LE(relative_error(p.acc, exact), 5e-7);
}

}  // namespace
}  // namespace dz::kernels::test
