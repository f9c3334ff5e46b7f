// exp2, log and the double functions against the 80-bit functions of libm, which is an oracle here and nowhere in the path.
#include "numerics/functions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/check.h"
#include "numerics/functions64.h"

namespace dz::numerics {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

template <class Real>
long double ulp_of(long double exact) {
  int exponent = 0;
  std::frexp(exact, &exponent);
  const int digits = std::numeric_limits<Real>::digits;
  return std::ldexp(1.0L, std::max(exponent, std::numeric_limits<Real>::min_exponent) - digits);
}

template <class Real>
double error_in_ulp(Real value, long double exact) {
  return static_cast<double>(std::fabs(static_cast<long double>(value) - exact) / ulp_of<Real>(exact));
}

uint32_t bits(float x) { return std::bit_cast<uint32_t>(x); }

TEST(Exp2, IsWithinTheStatedError) {
  double worst = 0;
  for (uint32_t magnitude = 0x30000000u; magnitude < bits(128.0f); magnitude += 211) {
    for (const float x : {std::bit_cast<float>(magnitude), -std::bit_cast<float>(magnitude)}) {
      if (x >= -126.0f) worst = std::max(worst, error_in_ulp(exp2(x), ::exp2l(x)));
    }
  }
  EXPECT_LE(worst, 0.92);
  EXPECT_GE(worst, 0.5) << "the measurement itself must see rounding";
}

TEST(Exp2, SpecialValuesAreExact) {
  EXPECT_EQ(bits(exp2(0.0f)), bits(1.0f));
  EXPECT_EQ(bits(exp2(-0.0f)), bits(1.0f));
  EXPECT_EQ(bits(exp2(-kInf)), 0u);
  EXPECT_EQ(exp2(kInf), kInf);
  EXPECT_EQ(exp2(128.0f), kInf);
  EXPECT_LT(exp2(std::nextafter(128.0f, 0.0f)), kInf);
  EXPECT_EQ(exp2(-126.0f), 0x1p-126f);
  EXPECT_EQ(bits(exp2(std::nextafter(-126.0f, -kInf))), 0u) << "results below the smallest normal number are +0";
  EXPECT_EQ(bits(exp2(std::numeric_limits<float>::lowest())), 0u);
  EXPECT_EQ(exp2(std::numeric_limits<float>::max()), kInf);
  for (int n = -126; n <= 127; ++n) EXPECT_EQ(exp2(static_cast<float>(n)), std::ldexp(1.0f, n)) << n;
  for (const uint32_t nan : {0x7fc00000u, 0xffc00000u, 0x7fc00001u, 0x7fffffffu}) EXPECT_TRUE(std::isnan(exp2(std::bit_cast<float>(nan)))) << nan;
}

TEST(Exp2, NeverDecreases) {
  float last = 0;
  for (float x = -1.0f; x < 1.0f; x += 0x1p-14f) {
    const float value = exp2(x);
    ASSERT_GE(value, last) << x;
    last = value;
  }
}

TEST(Log, IsWithinTheStatedError) {
  double worst = 0;
  const auto measure = [&](uint32_t pattern) {
    const float x = std::bit_cast<float>(pattern);
    if (x != 1.0f) worst = std::max(worst, error_in_ulp(log(x), ::logl(x)));
  };
  for (uint32_t pattern = bits(0x1p-126f); pattern < bits(kInf); pattern += 509) measure(pattern);
  for (uint32_t pattern = bits(0.5f); pattern < bits(2.0f); pattern += 13) measure(pattern);
  EXPECT_LE(worst, 1.2);
}

TEST(Log, SpecialValues) {
  EXPECT_EQ(bits(log(1.0f)), 0u);
  EXPECT_EQ(log(0.0f), -kInf);
  EXPECT_EQ(log(-0.0f), -kInf);
  EXPECT_EQ(log(0x1p-127f), -kInf) << "a denormal counts as zero";
  EXPECT_EQ(log(kInf), kInf);
  for (const float x : {-1.0f, -kInf, std::numeric_limits<float>::quiet_NaN()}) EXPECT_TRUE(std::isnan(log(x))) << x;
}

TEST(Functions64, ExpLogAndPowAreNearlyCorrectlyRounded) {
  double worst_exp = 0, worst_log = 0, worst_pow = 0;
  uint64_t state = 1;
  const auto next = [&state] {  // in (0, 1)
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (static_cast<double>(state >> 12) + 0.5) * 0x1p-52;
  };
  for (int i = 0; i < 60000; ++i) {
    const double x = (next() - 0.5) * 1400.0;
    worst_exp = std::max(worst_exp, error_in_ulp(exp(x), ::expl(x)));
    const double y = i % 2 == 0 ? std::ldexp(next(), static_cast<int>(next() * 2000) - 1000) : 0.5 + next();
    worst_log = std::max(worst_log, error_in_ulp(log(y), ::logl(y)));
    const double base = std::ldexp(1.0 + next(), static_cast<int>(next() * 40) - 10), power = (next() - 0.3) * 4.0;
    worst_pow = std::max(worst_pow, error_in_ulp(pow(base, power), ::powl(base, power)));
  }
  EXPECT_LE(worst_exp, 0.6);
  EXPECT_LE(worst_log, 0.52);
  EXPECT_LE(worst_pow, 0.6);
}

TEST(Functions64, SinAndCosHoldToTheLastAngleOfALongContext) {
  double worst = 0, worst_ulp = 0;
  const auto measure = [&](double x) {
    worst = std::max({worst, std::fabs(static_cast<double>(static_cast<long double>(sin(x)) - ::sinl(x))),
                      std::fabs(static_cast<double>(static_cast<long double>(cos(x)) - ::cosl(x)))});
    worst_ulp = std::max({worst_ulp, error_in_ulp(sin(x), ::sinl(x)), error_in_ulp(cos(x), ::cosl(x))});
  };
  for (int64_t i = 1; i < 60000; ++i) {
    measure(static_cast<double>(i) * 0.0007 - 20.0);
    measure(static_cast<double>(static_cast<float>(i * 17)) * double{0x1.a3f1c6p-2f});
    measure(static_cast<double>(i * 17));
  }
  // The doubles next to multiples of pi / 2, where the reduction cancels most.
  for (int64_t n = 1; n < 600000; n += 37) measure(static_cast<double>(static_cast<long double>(n) * 1.57079632679489661923132L));
  EXPECT_LE(worst, 1.2e-16);
  EXPECT_LE(worst_ulp, 0.8);
}

TEST(Functions64, SpecialValues) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(exp(0.0), 1.0);
  EXPECT_EQ(exp(-inf), 0.0);
  EXPECT_EQ(exp(inf), inf);
  EXPECT_EQ(exp(800.0), inf);
  EXPECT_EQ(exp(-709.0), 0.0);
  EXPECT_EQ(log(1.0), 0.0);
  EXPECT_EQ(log(0.0), -inf);
  EXPECT_TRUE(std::isnan(log(-1.0)));
  EXPECT_EQ(pow(500000.0, 0.0), 1.0);
  EXPECT_EQ(pow(2.0, 10.0), 1024.0);
  EXPECT_EQ(pow(10.0, 400.0), inf);
  EXPECT_EQ(pow(10.0, -400.0), 0.0);
  EXPECT_TRUE(std::isnan(pow(-2.0, 2.0)));
  EXPECT_EQ(sin(0.0), 0.0);
  EXPECT_EQ(cos(0.0), 1.0);
  EXPECT_THROW(sin(0x1p21), BugError);
  EXPECT_THROW(cos(std::numeric_limits<double>::quiet_NaN()), BugError);
}

TEST(Functions64, InverseNormalInvertsTheDistribution) {
  const auto probability = [](double x) { return 0.5L * ::erfcl(-static_cast<long double>(x) / 1.41421356237309504880169L); };
  for (double p = 1e-12; p < 1.0; p = p < 1e-3 ? p * 1.7 : p + 0.00071) {
    const double x = inverse_normal(p);
    const long double density = ::expl(-0.5L * static_cast<long double>(x) * x) * 0.398942280401432677939946L;
    const long double error = (probability(x) - static_cast<long double>(p)) / density;  // of x
    EXPECT_LE(std::fabs(static_cast<double>(error)), 2e-15 * std::max(1.0, std::fabs(x))) << p;
  }
  EXPECT_EQ(inverse_normal(0.5), 0.0);
  EXPECT_EQ(inverse_normal(0.0), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(inverse_normal(1.5)));
}

}  // namespace
}  // namespace dz::numerics
