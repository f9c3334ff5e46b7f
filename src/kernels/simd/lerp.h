// torch's interpolation, sixteen lanes at a time; the scalar form is ref/lerp.h.
#pragma once

#include "kernels/simd/v16.h"

namespace dz::kernels::DZ_SIMD {

// Which of the two formulas holds is the same for all lanes, so it is chosen once.
struct Lerp {
  V16 slope;
  bool from_end;

  DZ_INLINE V16 operator()(V16 a, V16 b) const { return fma(slope, b - a, from_end ? b : a); }
};

DZ_INLINE Lerp lerp_by(float weight) {
  const bool from_end = !(__builtin_fabsf(weight) < 0.5f);
  return {splat(from_end ? weight - 1.0f : weight), from_end};
}

}  // namespace dz::kernels::DZ_SIMD
