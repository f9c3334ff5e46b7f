// torch's interpolation (ATen/native/Lerp.h, its vector form): two formulas, so that both ends are exact.
#pragma once

#include <cmath>

namespace dz::kernels::ref {

inline float lerp(float a, float b, float weight) {
  return std::fabs(weight) < 0.5f ? std::fma(weight, b - a, a) : std::fma(weight - 1.0f, b - a, b);
}

}  // namespace dz::kernels::ref
