#include "numerics/torch_random.h"

#include <bit>

#include "numerics/functions.h"
#include "numerics/functions64.h"

namespace dz::numerics {
namespace {

constexpr int64_t kGroup = 16;
constexpr double kTwoPi = 0x1.921fb54442d18p+2;
constexpr double kCutMass = 0x1.fe9e21e067a4ap-1;  // erf(3 / sqrt 2), the mass within three deviations
constexpr double kSqrt2 = 0x1.6a09e667f3bcdp+0;

// Cephes logf of a positive normal x, with the fused operations that torch's AVX2 build has.
DZ_INLINE float log_cephes(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  float e = static_cast<float>(static_cast<int32_t>(bits >> 23) - 126);
  const float m = std::bit_cast<float>((bits & 0x007fffffu) | 0x3f000000u);
  const bool low = m < 0.707106781186547524f;
  e = low ? e - 1.0f : e;
  x = (m - 1.0f) + (low ? m : 0.0f);
  const float z = x * x;
  float y = 7.0376836292e-2f;
  for (const float p : {-1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f, -1.6668057665e-1f, 2.0000714765e-1f,
                        -2.4999993993e-1f, 3.3333331174e-1f})
    y = fma(y, x, p);
  y = fma(y * x, z, e * -2.12194440e-4f);
  y = fma(z, -0.5f, y);
  return fma(e, 0.693359375f, x + y);
}

// Cephes sincosf of an angle from 0 to 2 pi, likewise.
DZ_INLINE void sincos_cephes(float x, float* sine, float* cosine) {
  const int32_t j = (static_cast<int32_t>(x * 1.27323954473516f) + 1) & ~1;
  const float octant = static_cast<float>(j);
  for (const float part : {-0.78515625f, -2.4187564849853515625e-4f, -3.77489497744594108e-8f}) x = fma(octant, part, x);
  const float z = x * x;
  float c = 2.443315711809948e-5f, s = -1.9515295891e-4f;
  for (const float p : {-1.388731625493765e-3f, 4.166664568298827e-2f}) c = fma(c, z, p);
  c = fma(c * z, z, z * -0.5f) + 1.0f;
  for (const float p : {8.3321608736e-3f, -1.6666654611e-1f}) s = fma(s, z, p);
  s = fma(s * z, x, x);
  const bool swap = (j & 2) != 0;
  const float sn = swap ? c : s, cs = swap ? s : c;
  *sine = (j & 4) != 0 ? -sn : sn;
  *cosine = (~(j - 2) & 4) != 0 ? -cs : cs;
}

bool is_outside(float x, float low, float high) { return x < low || x > high; }

}  // namespace

double TorchStream::unit53() {
  const uint64_t high = engine_.next();  // the first word is the high one
  return static_cast<double>((high << 32 | engine_.next()) & ((uint64_t{1} << 53) - 1)) * 0x1p-53;
}

void TorchStream::uniform(std::span<float> out, double from, double to) {
  const float low = static_cast<float>(from), span = static_cast<float>(to) - low;
  for (float& x : out) x = fma(unit24(), span, low);
}

void TorchStream::uniform(std::span<double> out, double from, double to) {
  for (double& x : out) x = unit53() * (to - from) + from;
}

double TorchStream::short_normal() {
  if (spare_) {
    const double z = *spare_;
    spare_.reset();
    return z;
  }
  const double u1 = unit53(), u2 = unit53();
  const double r = __builtin_sqrt(-2.0 * log(1.0 - u2));  // 1 - u2 is exact, so this is log1p(-u2)
  const double angle = kTwoPi * u1;
  spare_ = r * sin(angle);
  return r * cos(angle);
}

// 8 radii, 8 angles -> 8 cosines, 8 sines.
void TorchStream::normal_group(float* out, float mean, float std) {
  float u[kGroup];
  for (float& x : u) x = unit24();
  for (int64_t j = 0; j < kGroup / 2; ++j) {
    const float r = __builtin_sqrtf(-2.0f * log_cephes(1.0f - u[j]));
    float sine = 0, cosine = 0;
    sincos_cephes(static_cast<float>(kTwoPi) * u[j + kGroup / 2], &sine, &cosine);
    out[j] = fma(r * cosine, std, mean);
    out[j + kGroup / 2] = fma(r * sine, std, mean);
  }
}

void TorchStream::normal(std::span<float> out, double mean, double std) {
  const auto count = static_cast<int64_t>(out.size());
  if (count < kGroup) {
    for (float& x : out) x = static_cast<float>(short_normal() * std + mean);
    return;
  }
  const float mean32 = static_cast<float>(mean), std32 = static_cast<float>(std);
  const int64_t whole = count - count % kGroup;
  for (int64_t i = 0; i < whole; i += kGroup) normal_group(out.data() + i, mean32, std32);
  if (whole == count) return;
  // All uniforms are drawn before the first is used: those of the part of a group are lost, and the last 16 values come from new ones.
  engine_.skip(count - whole);
  normal_group(out.data() + count - kGroup, mean32, std32);
}

void TorchStream::normal(std::span<double> out, double mean, double std) {
  const auto count = static_cast<int64_t>(out.size());
  if (count < kGroup) {
    for (double& x : out) x = short_normal() * std + mean;
    return;
  }
  const auto group = [&](double* at) {
    double u[kGroup];
    for (double& x : u) x = unit53();
    for (int64_t j = 0; j < kGroup / 2; ++j) {
      const double r = __builtin_sqrt(-2.0 * log(1.0 - u[j])), angle = kTwoPi * u[j + kGroup / 2];
      at[j] = r * cos(angle) * std + mean;
      at[j + kGroup / 2] = r * sin(angle) * std + mean;
    }
  };
  const int64_t whole = count - count % kGroup;
  for (int64_t i = 0; i < whole; i += kGroup) group(out.data() + i);
  if (whole == count) return;
  engine_.skip(2 * (count - whole));
  group(out.data() + count - kGroup);
}

// A whole new tensor is drawn, but only the groups that hold a value to be replaced are computed.
void TorchStream::draw_again(std::span<float> out, std::vector<int64_t>& outside, double std, float low, float high) {
  const auto count = static_cast<int64_t>(out.size());
  if (count < kGroup) {
    float fresh[kGroup];
    normal(std::span(fresh).first(out.size()), 0.0, std);
    for (const int64_t i : outside) out[static_cast<size_t>(i)] = fresh[i];
  } else {
    const float std32 = static_cast<float>(std);
    const int64_t tail = count % kGroup == 0 ? count : count - kGroup;  // from here on a group of its own, drawn last
    float fresh[kGroup] = {};
    int64_t drawn = 0, begin = -kGroup;
    size_t next = 0;
    for (; next < outside.size() && outside[next] < tail; ++next) {
      const int64_t i = outside[next];
      if (i >= begin + kGroup) {
        begin = i / kGroup * kGroup;
        engine_.skip(begin - drawn);
        normal_group(fresh, 0.0f, std32);
        drawn = begin + kGroup;
      }
      out[static_cast<size_t>(i)] = fresh[i - begin];
    }
    engine_.skip(count - drawn);
    if (tail < count) normal_group(fresh, 0.0f, std32);
    for (; next < outside.size(); ++next) out[static_cast<size_t>(outside[next])] = fresh[outside[next] - tail];
  }
  std::erase_if(outside, [&](int64_t i) { return !is_outside(out[static_cast<size_t>(i)], low, high); });
}

void TorchStream::truncated_normal(std::span<float> out, double std, TorchCut cut) {
  const float low = static_cast<float>(-3 * std), high = static_cast<float>(3 * std);
  if (cut == TorchCut::kErfinv) {
    uniform(out, -kCutMass, kCutMass);
    const float scale = static_cast<float>(std * kSqrt2);
    for (float& x : out) {
      x = static_cast<float>(inverse_erf(double{x})) * scale;
      x = x < low ? low : x > high ? high : x;
    }
    return;
  }
  normal(out, 0.0, std);
  std::vector<int64_t> outside;
  for (size_t i = 0; i < out.size(); ++i) {
    if (is_outside(out[i], low, high)) outside.push_back(static_cast<int64_t>(i));
  }
  while (!outside.empty()) draw_again(out, outside, std, low, high);
}

}  // namespace dz::numerics
