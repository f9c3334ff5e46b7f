// What the tests of the scalar kernels share: seeded values, doubles of stored values, and error measures.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/dtype.h"
#include "base/thread_pool.h"
#include "kernels/ref/ref.h"
#include "kernels/table.h"
#include "numerics/rounding.h"

namespace dz::kernels::test {

// The scalar table, whatever the active one is. Flush-to-zero is on for the calling thread, as in every computing thread.
inline const Table& scalar() {
  set_flush_to_zero();
  return table_of(Isa::kScalar);
}

// Values in (-scale, scale) from a fixed sequence.
class Values {
 public:
  explicit Values(uint64_t seed) : state_(seed * 2 + 1) {}
  float next(float scale = 1.0f) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return (static_cast<float>(state_ >> 40) * 0x1p-23f - 1.0f) * scale;
  }
  int64_t below(int64_t count) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>((state_ >> 33) % static_cast<uint64_t>(count));
  }
  template <class T>
  std::vector<T> make(int64_t count, float scale = 1.0f) {
    std::vector<T> out(static_cast<size_t>(count));
    for (T& x : out) x = numerics::round_to<T>(next(scale));
    return out;
  }

 private:
  uint64_t state_;
};

template <class T>
std::vector<double> doubles(const std::vector<T>& values) {
  std::vector<double> out;
  for (const T& x : values) out.push_back(double{numerics::to_float(x)});
  return out;
}

// Largest difference relative to the largest reference value.
template <class T>
double relative_error(const std::vector<T>& values, const std::vector<double>& reference) {
  double worst = 0, scale = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double difference = std::fabs(double{numerics::to_float(values[i])} - reference[i]);
    worst = difference == difference ? std::max(worst, difference) : INFINITY;
    scale = std::max(scale, std::fabs(reference[i]));
  }
  return values.size() != reference.size() ? INFINITY : scale == 0 ? worst : worst / scale;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

inline uint32_t bits(float x) { return std::bit_cast<uint32_t>(x); }

// What a compute type may lose against float64: half an ulp of bf16 for the result and some for its rounded inputs, or f32 sums.
template <class T>
constexpr double tolerance() {
  return sizeof(T) == 2 ? 6e-3 : 2e-6;
}

}  // namespace dz::kernels::test
