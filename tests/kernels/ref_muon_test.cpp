// Scalar ops of Muon and the single form of AdamW, written out operation by operation.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/ref_support.h"

namespace dz::kernels::test {
namespace {

constexpr int64_t kCount = 300;

float literal_lerp(float a, float b, float weight) {
  volatile float difference = b - a;
  if (std::fabs(weight) < 0.5f) return std::fma(weight, difference, a);
  volatile float slope = weight - 1.0f;
  return std::fma(slope, difference, b);
}

TEST(RefMuon, MomentumIsTorchsInterpolation) {
  Values values(1);
  const auto gradient = values.make<float>(kCount), before = values.make<float>(kCount);
  for (const float momentum : {0.95f, 0.4f}) {
    for (const bool nesterov : {true, false}) {
      std::vector<float> m = before, update(kCount);
      MuonMomentum args{.count = kCount, .clip = 0.37f, .take = 1.0f - momentum, .momentum = momentum, .nesterov = nesterov};
      args.gradient = gradient.data();
      args.m = m.data();
      args.update = update.data();
      scalar().muon_momentum(args, 0, kCount);
      int plain_differs = 0;
      for (size_t i = 0; i < kCount; ++i) {
        volatile float g = gradient[i] * 0.37f;
        const float average = literal_lerp(before[i], g, args.take);
        EXPECT_EQ(m[i], average);
        const float u = nesterov ? literal_lerp(g, average, momentum) : average;
        EXPECT_EQ(update[i], numerics::to_float(numerics::to_bf16(u)));
        volatile float kept = before[i] * momentum, taken = g * args.take;
        plain_differs += kept + taken != average;
      }
      EXPECT_GT(plain_differs, 0) << "two products and a sum are another average";
    }
  }
}

TEST(RefMuon, NormalizeCombineApply) {
  Values values(2);
  const auto x = values.make<float>(kCount), acc = values.make<float>(kCount), weights = values.make<float>(kCount);
  const auto half = values.make<bf16>(kCount);
  std::vector<bf16> normal(kCount), combined = half;
  std::vector<float> p = weights;
  scalar().muon_normalize({.count = kCount, .norm = 3.171875f, .x = x.data(), .out = normal.data()}, 0, kCount);
  scalar().muon_combine({.count = kCount, .x_scale = -4.775f, .acc_scale = 2.0315f, .x = combined.data(), .acc = acc.data(), .out = combined.data()},
                        0, kCount);
  scalar().muon_apply({.count = kCount, .decay = 0.998f, .step = -0.02f, .x = half.data(), .p = p.data()}, 0, kCount);
  for (size_t i = 0; i < kCount; ++i) {
    const float wide = numerics::to_float(half[i]);
    EXPECT_EQ(normal[i].bits, numerics::to_bf16(x[i] / 3.171875f).bits);
    volatile float a = wide * -4.775f, b = acc[i] * 2.0315f, sum = a + b;
    EXPECT_EQ(combined[i].bits, numerics::to_bf16(sum).bits);
    volatile float decayed = weights[i] * 0.998f;
    EXPECT_EQ(p[i], std::fma(-0.02f, wide, decayed));
  }
}

TEST(RefMuon, TheSingleFormOfAdamWFusesItsMoments) {
  Values values(3);
  const auto gradient = values.make<float>(kCount), p = values.make<float>(kCount), m = values.make<float>(kCount);
  auto v = values.make<float>(kCount, 0.01f);  // so that both parts of the sum count
  for (float& x : v) x = std::fabs(x);
  std::vector<float> moved = p, first = m, second = v;
  AdamW args{.count = kCount,
             .single = true,
             .clip = 0.37f,
             .decay = 0.9997f,
             .m_keep = 0.9f,
             .m_take = 0.1f,
             .v_keep = 0.95f,
             .v_take = 0.05f,
             .sqrt_bc2 = 0.6f,
             .eps = 1e-8f,
             .step = -4e-4f,
             .gradient = gradient.data(),
             .p = moved.data(),
             .m = first.data(),
             .v = second.data()};
  scalar().adamw(args, 0, kCount);
  int foreach_differs = 0;
  for (size_t i = 0; i < kCount; ++i) {
    volatile float g = gradient[i] * 0.37f, square = g * g, kept = v[i] * 0.95f;
    EXPECT_EQ(first[i], literal_lerp(m[i], g, 0.1f));
    EXPECT_EQ(second[i], std::fma(square, 0.05f, kept));
    volatile float taken = square * 0.05f;
    foreach_differs += kept + taken != second[i];
    volatile float root = std::sqrt(second[i]), scaled = root / 0.6f, d = scaled + 1e-8f, ratio = first[i] / d, change = ratio * -4e-4f,
                   decayed = p[i] * 0.9997f;
    EXPECT_EQ(moved[i], decayed + change);
  }
  EXPECT_GT(foreach_differs, 0) << "the other form must be noticed";
}

}  // namespace
}  // namespace dz::kernels::test
