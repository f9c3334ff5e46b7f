#include "numerics/functions64.h"

#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "numerics/functions.h"

namespace dz::numerics {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// log(2) and pi / 2 in three parts; the first two have so few bits that their products with an integer n below 2^11 (2^20) are exact.
constexpr double kLn2[3] = {0x1.62e42fefa3800p-1, 0x1.ef35793c76000p-45, 0x1.cc01f97b57a08p-87};
constexpr double kHalfPi[3] = {0x1.921fb54400000p+0, 0x1.0b4611a600000p-34, 0x1.3198a2e037073p-69};
constexpr double kLogSmallest = -0x1.6232bdd7abcd2p+9;  // log(2^-1022)
constexpr double kLog2E64 = 0x1.71547652b82fep+0;
constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
constexpr double kMagic = 0x1.8p+52;  // x + kMagic - kMagic is x rounded to an integer

// An unevaluated sum of two doubles, |low| at most half an ulp of high.
struct Pair {
  double high = 0, low = 0;
};

Pair two_sum(double a, double b) {
  const double sum = a + b;
  const double from_b = sum - a;
  return {sum, (a - (sum - from_b)) + (b - from_b)};
}

Pair fast_two_sum(double a, double b) {  // |a| >= |b|
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

Pair multiply(Pair a, Pair b) {
  const double product = a.high * b.high;
  const double rest = fma(a.high, b.high, -product) + (a.high * b.low + a.low * b.high);
  return fast_two_sum(product, rest);
}

Pair add(Pair a, Pair b) {
  const Pair sum = two_sum(a.high, b.high);
  return fast_two_sum(sum.high, sum.low + (a.low + b.low));
}

Pair divide(Pair a, Pair b) {
  const double quotient = a.high / b.high;
  const double rest = (fma(-quotient, b.high, a.high) + a.low) - quotient * b.low;
  return fast_two_sum(quotient, rest / b.high);
}

double round_to_integer(double x) { return (x + kMagic) - kMagic; }

// 2^n for a normal result.
double power_of_two(int64_t n) { return std::bit_cast<double>(static_cast<uint64_t>(n + 1023) << 52); }

// e^(x.high + x.low) for a finite x.
double exp_of(Pair x) {
  if (x.high > 709.79) return kInf;
  if (x.high < kLogSmallest) return 0.0;
  const double n = round_to_integer(x.high * kLog2E64);
  Pair r = two_sum(fma(-n, kLn2[0], x.high), -(n * kLn2[1]));
  r = fast_two_sum(r.high, r.low + fma(-n, kLn2[2], x.low));
  // e^r = 1 + (r + r^2 (1/2! + r/3! + ... + r^12/14!)), |r| <= 0.347
  static constexpr double kInverseFactorials[] = {1.0 / 87178291200.0,
                                                  1.0 / 6227020800.0,
                                                  1.0 / 479001600.0,
                                                  1.0 / 39916800.0,
                                                  1.0 / 3628800.0,
                                                  1.0 / 362880.0,
                                                  1.0 / 40320.0,
                                                  1.0 / 5040.0,
                                                  1.0 / 720.0,
                                                  1.0 / 120.0,
                                                  1.0 / 24.0,
                                                  1.0 / 6.0,
                                                  0.5};
  double p = 0.0;
  for (const double c : kInverseFactorials) p = fma(p, r.high, c);
  const Pair tail = fast_two_sum(r.high, fma(r.high * r.high, p, r.low * (1.0 + r.high)));
  const Pair sum = fast_two_sum(1.0, tail.high);
  const double value = sum.high + (sum.low + tail.low);
  const int64_t exponent = static_cast<int64_t>(n);
  const int64_t half = exponent / 2;  // in two steps, because 2^1024 alone is infinite
  return value * power_of_two(half) * power_of_two(exponent - half);
}

// log(x) for a finite positive normal x, to about 2^-62 of its value.
Pair log_of(double x) {
  constexpr uint64_t kSqrtHalf = 0x3fe6a09e667f3bcdu;
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  const uint64_t above = bits - kSqrtHalf;
  const double m = std::bit_cast<double>(bits - (above & 0xfff0000000000000u));  // in [sqrt(1/2), sqrt(2))
  // log m = 2 s + 2 s^3 (1/3 + s^2/5 + ...), s = (m - 1) / (m + 1), |s| < 0.172
  const Pair s = divide({m - 1.0, 0.0}, two_sum(m, 1.0));
  const Pair s2 = multiply(s, s);
  double series = 0.0;
  for (int k = 31; k >= 7; k -= 2) series = fma(series, s2.high, 1.0 / k);
  Pair tail = add({0.2, -0x1.999999999999ap-57}, {s2.high * series, 0.0});
  tail = add({1.0 / 3.0, 0x1.5555555555555p-56}, multiply(s2, tail));
  const Pair log_m = multiply({2.0 * s.high, 2.0 * s.low}, add({1.0, 0.0}, multiply(s2, tail)));
  const double e = static_cast<double>(static_cast<int64_t>(above) >> 52);
  const Pair scaled = two_sum(e * kLn2[0], e * kLn2[1]);
  return add(scaled, {log_m.high, log_m.low + e * kLn2[2]});
}

// x = n pi / 2 + r, |r| <= pi / 4; returns r and n mod 4.
Pair reduce_angle(double x, int64_t* quadrant) {
  DZ_CHECK(std::fabs(x) <= 0x1p20, "angle", x);
  const double n = round_to_integer(x * kTwoOverPi);
  const Pair r = two_sum(x - n * kHalfPi[0], -(n * kHalfPi[1]));  // both products are exact, and so is the first difference
  *quadrant = static_cast<int64_t>(n) & 3;
  return fast_two_sum(r.high, r.low - n * kHalfPi[2]);
}

// Taylor series on |r| <= pi / 4; the next term is below 2^-60.
double sin_of(Pair r) {
  static constexpr double kTerms[] = {1.0 / 355687428096000.0, -1.0 / 1307674368000.0, 1.0 / 6227020800.0, -1.0 / 39916800.0,
                                      1.0 / 362880.0,          -1.0 / 5040.0,          1.0 / 120.0,        -1.0 / 6.0};
  const double r2 = r.high * r.high;
  double p = 0.0;
  for (const double c : kTerms) p = fma(p, r2, c);
  return r.high + fma(r.high * r2, p, r.low * fma(-0.5, r2, 1.0));
}

double cos_of(Pair r) {
  static constexpr double kTerms[] = {-1.0 / 6402373705728000.0, 1.0 / 20922789888000.0, -1.0 / 87178291200.0, 1.0 / 479001600.0,
                                      -1.0 / 3628800.0,          1.0 / 40320.0,          -1.0 / 720.0,         1.0 / 24.0};
  const double r2 = r.high * r.high;
  double p = 0.0;
  for (const double c : kTerms) p = fma(p, r2, c);
  const double half = 0.5 * r2;
  const double head = 1.0 - half;
  return head + (((1.0 - head) - half) + fma(r2 * r2, p, -r.high * r.low));
}

template <size_t kCount>
double polynomial(const double (&coefficients)[kCount], double x) {
  double p = 0.0;
  for (const double c : coefficients) p = fma(p, x, c);
  return p;
}

}  // namespace

double exp(double x) {
  if (x != x || x == kInf) return x;
  return x == -kInf ? 0.0 : exp_of({x, 0.0});
}

double log(double x) {
  if (std::fabs(x) < std::numeric_limits<double>::min()) return -kInf;
  if (x < 0.0) return kNan;
  if (!(x < kInf)) return x;
  const Pair value = log_of(x);
  return value.high + value.low;
}

double pow(double base, double y) {
  if (y == 0.0 || base == 1.0) return 1.0;
  if (std::fabs(base) < std::numeric_limits<double>::min() && y > 0.0) return 0.0;
  if (!(base >= std::numeric_limits<double>::min()) || base == kInf || !(std::fabs(y) < kInf)) return kNan;
  const Pair exponent = multiply(log_of(base), {y, 0.0});
  if (!(std::fabs(exponent.high) < kInf)) return exponent.high > 0.0 ? kInf : 0.0;
  return exp_of(exponent);
}

double sin(double x) {
  int64_t quadrant = 0;
  const Pair r = reduce_angle(x, &quadrant);
  const double value = quadrant % 2 == 0 ? sin_of(r) : cos_of(r);
  return quadrant >= 2 ? -value : value;
}

double cos(double x) {
  int64_t quadrant = 0;
  const Pair r = reduce_angle(x, &quadrant);
  const double value = quadrant % 2 == 0 ? cos_of(r) : sin_of(r);
  return quadrant == 1 || quadrant == 2 ? -value : value;
}

namespace {

// The quantile at 1/2 + q; `tail` is 1/2 - |q|.
double quantile(double q, double tail) {
  static constexpr double kA[] = {2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
                                  1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0};
  static constexpr double kB[] = {5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
                                  5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0};
  static constexpr double kC[] = {7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0,
                                  3.64784832476320460504e0,  5.76949722146069140550e0,  4.63033784615654529590e0,  1.42343711074968357734e0};
  static constexpr double kD[] = {1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
                                  6.89767334985100004550e-1, 1.67638483018380384940e0,  2.05319162663775882187e0,  1.0};
  static constexpr double kE[] = {2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
                                  2.96560571828504891230e-1, 1.78482653991729133580e0,  5.46378491116411436990e0,  6.65790464350110377720e0};
  static constexpr double kF[] = {2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
                                  1.48753612908506148525e-2,  1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0};
  if (std::fabs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(kA, r) / polynomial(kB, r);
  }
  const double r = std::sqrt(-log(tail));
  const double value = r <= 5.0 ? polynomial(kC, r - 1.6) / polynomial(kD, r - 1.6) : polynomial(kE, r - 5.0) / polynomial(kF, r - 5.0);
  return q < 0.0 ? -value : value;
}

}  // namespace

double inverse_normal(double p) {
  if (!(p > 0.0 && p < 1.0)) return p == 0.0 ? -kInf : p == 1.0 ? kInf : kNan;
  const double q = p - 0.5;
  return quantile(q, q < 0.0 ? p : 1.0 - p);
}

double inverse_erf(double x) {
  if (!(std::fabs(x) < 1.0)) return x == 1.0 ? kInf : x == -1.0 ? -kInf : kNan;
  return quantile(0.5 * x, 0.5 * (1.0 - std::fabs(x))) * 0x1.6a09e667f3bcdp-1;
}

}  // namespace dz::numerics
