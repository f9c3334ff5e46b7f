// torch's CPU random numbers, bit for bit (ATen/native/cpu/DistributionTemplates.h with the AVX2 path, ATen/core/DistributionsHelper.h,
// torch/nn/init.py; computed with torch 2.15.0). docs/init.md explains the algorithm. CUDA's numbers are others.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "numerics/mt19937.h"

namespace dz::numerics {

// How torch cuts a normal at three deviations.
enum class TorchCut : uint8_t {
  kRejection,  // torch 2.12 and later: draws the whole tensor again until nothing is outside, taking only what was
  kErfinv,     // torch 2.11 and earlier: one uniform a value; within 2 ulp, because MKL's erfinv is not correctly rounded
};

// One generator: every call goes on where the one before has stopped.
class TorchStream {
 public:
  explicit TorchStream(uint64_t seed) : engine_(static_cast<uint32_t>(seed)) {}  // only the low 32 bits count

  void uniform(std::span<float> out, double from, double to);
  void uniform(std::span<double> out, double from, double to);
  // Fewer than 16 values come one at a time from a pair in double, whose second half waits for the next such call.
  void normal(std::span<float> out, double mean, double std);
  void normal(std::span<double> out, double mean, double std);  // 1 ulp: torch calls libm
  // trunc_normal_(0, std, -3 std, 3 std).
  void truncated_normal(std::span<float> out, double std, TorchCut cut);

 private:
  float unit24() { return static_cast<float>(engine_.next() & 0xffffffu) * 0x1p-24f; }
  double unit53();
  double short_normal();
  void normal_group(float* out, float mean, float std);
  void draw_again(std::span<float> out, std::vector<int64_t>& outside, double std, float low, float high);

  Mt19937 engine_;
  std::optional<double> spare_;
};

}  // namespace dz::numerics
