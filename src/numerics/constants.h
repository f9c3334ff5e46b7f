// The constants of the numerics contract (docs/numerics.md). Plain constexpr data, shared by the scalar and the vector forms.
#pragma once

#include <cstdint>

namespace dz::numerics {

// Names the contract that a run was made under; it changes with every change of bits.
inline constexpr const char* kNumericsId = "cpu-v1";

inline constexpr float kLog2E = 0x1.715476p+0f;      // log2(e), nearest float
inline constexpr float kLowest = -0x1.fffffep+127f;  // where a running maximum starts
inline constexpr float kSmallestNormal = 0x1p-126f;
inline constexpr float kInfinity = __builtin_inff();

// exp2: 2^f = 1 + f (c1 + f (c2 + ... c6)) on [-1/2, 1/2]; relative error of the polynomial 1.3e-8, c0 = 1 makes exp2(0) exact.
inline constexpr float kRoundMagic = 0x1.8p+23f;  // x + kRoundMagic holds x rounded to an integer in its low bits
inline constexpr uint32_t kRoundMagicBits = 0x4b400000u;
inline constexpr float kExp2C1 = 0x1.62e430p-1f;
inline constexpr float kExp2C2 = 0x1.ebfb94p-3f;
inline constexpr float kExp2C3 = 0x1.c6af9ep-5f;
inline constexpr float kExp2C4 = 0x1.3b6816p-7f;
inline constexpr float kExp2C5 = 0x1.5ef4dcp-10f;
inline constexpr float kExp2C6 = 0x1.17999cp-13f;

// log: log(1 + f) = f - f^2 / 2 + f^3 P(f) on [sqrt(1/2) - 1, sqrt(2) - 1], and e log(2) in two parts (the high one has 10 bits, so that
// e times it is exact).
inline constexpr uint32_t kSqrtHalfBits = 0x3f3504f3u;
inline constexpr uint32_t kExponentMask = 0xff800000u;
inline constexpr float kLn2High = 0x1.63p-1f;
inline constexpr float kLn2Low = -0x1.bd0106p-13f;
inline constexpr float kLogP0 = 0x1.555548p-2f;
inline constexpr float kLogP1 = -0x1.000070p-2f;
inline constexpr float kLogP2 = 0x1.99a542p-3f;
inline constexpr float kLogP3 = -0x1.552f10p-3f;
inline constexpr float kLogP4 = 0x1.230414p-3f;
inline constexpr float kLogP5 = -0x1.0106f4p-3f;
inline constexpr float kLogP6 = 0x1.efd474p-4f;
inline constexpr float kLogP7 = -0x1.b831d8p-4f;
inline constexpr float kLogP8 = 0x1.95b2fep-5f;

}  // namespace dz::numerics
