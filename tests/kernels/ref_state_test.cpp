// Scalar lane merge, cast, gradient norm and AdamW.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "kernels/ref_support.h"

namespace dz::kernels::test {
namespace {

TEST(RefState, AddAndCast) {
  Values values(1);
  const auto a = values.make<float>(100), b = values.make<float>(100);
  std::vector<float> sum = a;
  std::vector<bf16> rounded(100);
  scalar().add({.count = 100, .a = sum.data(), .b = b.data()}, 0, 100);
  scalar().cast_to_bf16({.count = 100, .x = a.data(), .out = rounded.data()}, 0, 100);
  for (size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(sum[i], a[i] + b[i]);
    EXPECT_EQ(rounded[i].bits, numerics::to_bf16(a[i]).bits);
  }
}

// The block rule written out: 16 lanes of double, fma, then the tree.
double literal_block(const float* x, int64_t count) {
  std::array<double, 16> lanes{};
  for (int64_t i = 0; i < (count + 15) / 16 * 16; ++i) {
    const double value = i < count ? double{x[i]} : 0.0;
    lanes[static_cast<size_t>(i % 16)] = std::fma(value, value, lanes[static_cast<size_t>(i % 16)]);
  }
  for (size_t half = 8; half >= 1; half /= 2) {
    for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

TEST(RefState, SquaredNormsByBlocks) {
  const int64_t count = 2 * kNormBlock + 77;
  Values values(2);
  const auto x = values.make<float>(count, 0.013f);
  std::vector<double> sums(3);
  scalar().squared_norms({.count = count, .x = x.data(), .sums = sums.data()}, 0, 3);
  EXPECT_EQ(sums[0], literal_block(x.data(), kNormBlock));
  EXPECT_EQ(sums[1], literal_block(x.data() + kNormBlock, kNormBlock));
  EXPECT_EQ(sums[2], literal_block(x.data() + 2 * kNormBlock, 77));
  EXPECT_NE(sums[2], literal_block(x.data() + 2 * kNormBlock, 76));
}

TEST(RefState, ALargeGradientHasAFiniteNorm) {
  const std::vector<float> x = {1e30f, -1e30f};
  double sum = 0;
  scalar().squared_norms({.count = 2, .x = x.data(), .sums = &sum}, 0, 1);
  EXPECT_NEAR(std::sqrt(sum), std::sqrt(2.0) * 1e30, 1e24);
}

struct AdamWState {
  std::vector<float> p, m, v;
};

TEST(RefState, AdamWRoundsEveryOperation) {
  Values values(3);
  const int64_t count = 200;
  const auto gradient = values.make<float>(count);
  AdamWState state{.p = values.make<float>(count), .m = values.make<float>(count, 0.1f), .v = values.make<float>(count, 0.1f)};
  for (float& v : state.v) v = std::fabs(v);
  const AdamWState before = state;
  AdamW args{.count = count,
             .clip = 0.37f,
             .decay = 0.99997f,
             .m_keep = 0.9f,
             .m_take = 0.1f,
             .v_keep = 0.95f,
             .v_take = 0.05f,
             .sqrt_bc2 = 0.6f,
             .eps = 1e-8f,
             .step = -4e-4f,
             .gradient = gradient.data(),
             .p = state.p.data(),
             .m = state.m.data(),
             .v = state.v.data()};
  scalar().adamw(args, 0, count);
  int fused_differs = 0;
  for (size_t i = 0; i < 200; ++i) {
    volatile float g = gradient[i] * args.clip;
    volatile float decayed = before.p[i] * args.decay;
    volatile float m_kept = before.m[i] * args.m_keep, m_taken = g * args.m_take;
    volatile float m = m_kept + m_taken;
    volatile float square = g * g;
    volatile float v_kept = before.v[i] * args.v_keep, v_taken = square * args.v_take;
    volatile float v = v_kept + v_taken;
    volatile float root = std::sqrt(float{v});
    volatile float scaled = root / args.sqrt_bc2;
    volatile float d = scaled + args.eps;
    volatile float ratio = m / d;
    volatile float change = ratio * args.step;
    volatile float p = decayed + change;
    EXPECT_EQ(state.p[i], p);
    EXPECT_EQ(state.m[i], m);
    EXPECT_EQ(state.v[i], v);
    fused_differs += std::fma(g, args.m_take, m_kept) != m;
  }
  EXPECT_GT(fused_differs, 0) << "an fma in the update must be noticed";
}

}  // namespace
}  // namespace dz::kernels::test
