#include "numerics/sums.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <vector>

namespace dz::numerics {
namespace {

std::vector<float> sequence(int64_t count) {
  std::vector<float> values;
  uint64_t state = 7;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    values.push_back((static_cast<float>(state >> 40) * 0x1p-22f - 1.7f) * (0.37f + 0.013f * static_cast<float>(i % 97)));
  }
  return values;
}

// The row rule written out for a given start lane: volatile keeps each rounding.
float literal_row_sum(const std::vector<float>& x, int64_t swap_a = 0, int64_t swap_b = 0) {
  volatile float lane[16] = {};
  for (size_t i = 0; i < x.size(); ++i) lane[i % 16] = lane[i % 16] + x[i];
  const float kept = lane[swap_a];
  lane[swap_a] = float{lane[swap_b]};
  lane[swap_b] = kept;
  volatile float eight[8], four[4], two[2];
  for (int i = 0; i < 8; ++i) eight[i] = lane[i] + lane[i + 8];
  for (int i = 0; i < 4; ++i) four[i] = eight[i] + eight[i + 4];
  for (int i = 0; i < 2; ++i) two[i] = four[i] + four[i + 2];
  volatile float sum = two[0] + two[1];
  return sum;
}

float row_sum(const std::vector<float>& x) {
  RowSum<float> sum;
  for (const float v : x) sum.add(v);
  return sum.total();
}

TEST(RowSum, FollowsTheLanesAndTheTree) {
  for (const int64_t count : {0, 1, 15, 16, 17, 100, 1000}) {
    const std::vector<float> x = sequence(count);
    EXPECT_EQ(row_sum(x), literal_row_sum(x)) << count;
  }
}

TEST(RowSum, TwoSwappedLanesAreNoticed) {
  int swapped = 0, reversed = 0;
  for (const int64_t count : {997, 998, 999, 1000, 1001, 1002}) {
    const std::vector<float> x = sequence(count);
    EXPECT_EQ(row_sum(x), literal_row_sum(x, 3, 11)) << "both ends of one addition may be swapped";
    swapped += row_sum(x) != literal_row_sum(x, 3, 4);
    reversed += row_sum(x) != row_sum(std::vector<float>(x.rbegin(), x.rend()));
  }
  EXPECT_GT(swapped, 0);
  EXPECT_GT(reversed, 0);
}

TEST(RowSum, ProductsAreFused) {
  RowSum<float> fused;
  fused.add_product(0x1.000002p+0f, 0x1.000002p+0f);
  fused.add(0.0f);
  const float a = fused.total();
  RowSum<float> cancelled;
  for (int i = 0; i < 16; ++i) cancelled.add(i == 0 ? -1.0f : 0.0f);
  cancelled.add_product(0x1.000002p+0f, 0x1.000002p+0f);
  EXPECT_EQ(a, 0x1.000004p+0f);
  EXPECT_EQ(cancelled.total(), 0x1.000001p-22f) << "the product is not rounded before the sum";
}

TEST(RowSum, AnUnfilledRowIsExtendedWithPlusZero) {
  RowSum<float> sum;
  sum.add_product(-0x1p-140f, 0x1p-140f);  // underflows to -0 in a thread that flushes, to -0 as well by rounding
  for (int i = 1; i < 20; ++i) sum.add(i < 16 ? -0.0f : 0.0f);
  EXPECT_EQ(std::bit_cast<uint32_t>(sum.total()), 0u);
}

TEST(TreeSum, CarriesAnOddOneUp) {
  int rotated = 0;
  for (const int64_t skip : {0, 1, 2, 3, 4, 5}) {
    const std::vector<float> all = sequence(skip + 7);
    std::vector<float> x(all.begin() + skip, all.end());
    std::vector<float> copy = x;
    const float expected = ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + x[6]);
    EXPECT_EQ(tree_sum(std::span(copy)), expected);
    std::rotate(x.begin(), x.begin() + 1, x.end());
    rotated += tree_sum(std::span(x)) != expected;
  }
  EXPECT_GT(rotated, 0) << "another order must be noticed";
  std::vector<double> none;
  EXPECT_EQ(tree_sum(std::span(none)), 0.0);
  std::vector<double> one = {-0.0};
  EXPECT_TRUE(std::signbit(tree_sum(std::span(one))));
}

TEST(TreeSum, FiveAreFourAndOne) {
  std::array<double, 5> x = {1e16, 1.0, -1e16, 1.0, 0.5};
  EXPECT_EQ(tree_sum(std::span<double>(x)), ((1e16 + 1.0) + (-1e16 + 1.0)) + 0.5);
}

}  // namespace
}  // namespace dz::numerics
