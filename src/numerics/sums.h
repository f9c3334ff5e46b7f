// The orders of summation of the contract (docs/numerics.md, "Sums"), as plain code.
#pragma once

#include <cstdint>
#include <span>

#include "numerics/functions.h"

namespace dz::numerics {

inline constexpr int64_t kRowLanes = 16;

// Joins 16 lanes: i + (i + 8), then + 4, + 2, + 1. The lanes are overwritten.
template <class Real>
DZ_INLINE Real join_lanes(Real* lanes) {
  for (int64_t half = kRowLanes / 2; half >= 1; half /= 2) {
    for (int64_t i = 0; i < half; ++i) lanes[i] = lanes[i] + lanes[i + half];
  }
  return lanes[0];
}

// A row sum: element i goes to lane i mod 16, ascending, each lane starting at +0; then join_lanes. Real is float or double.
template <class Real>
class RowSum {
 public:
  void add(Real x) {
    Real& lane = lanes_[count_++ % kRowLanes];
    lane = lane + x;
  }
  void add_product(Real a, Real b) {  // one rounding: fma(a, b, lane)
    Real& lane = lanes_[count_++ % kRowLanes];
    lane = fma(a, b, lane);
  }
  // Ends the sum. A row that does not fill its last 16 is extended with +0, which turns a lane that holds -0 into +0.
  Real total() {
    while (count_ % kRowLanes != 0) add(Real{0});
    return join_lanes(lanes_);
  }

 private:
  Real lanes_[kRowLanes] = {};
  int64_t count_ = 0;
};

// Tree over any count: adjacent pairs, an odd one is carried up unchanged. `values` is overwritten; an empty span gives +0.
template <class Real>
Real tree_sum(std::span<Real> values) {
  size_t count = values.size();
  if (count == 0) return Real{0};
  while (count > 1) {
    const size_t pairs = count / 2;
    for (size_t i = 0; i < pairs; ++i) values[i] = values[2 * i] + values[2 * i + 1];
    if (count % 2 != 0) values[pairs] = values[count - 1];
    count = pairs + count % 2;
  }
  return values[0];
}

}  // namespace dz::numerics
