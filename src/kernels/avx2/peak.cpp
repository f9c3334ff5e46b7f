// Independent chains of vfmadd231ps from registers only, small non-zero values so that the multipliers switch and no sum overflows.
#include <immintrin.h>

#include "kernels/peak_loops.h"

namespace dz::kernels::avx2 {

// 12 chains hide the latency of 4 cycles at two a cycle and leave registers for the operands.
void peak_loop(int64_t turns) {
  __m256 sums[12];
#pragma GCC unroll 12
  for (auto& sum : sums) sum = _mm256_setzero_ps();
  const __m256 x = _mm256_set1_ps(0.0004f);
  for (int64_t turn = 0; turn < turns; ++turn) {
#pragma GCC unroll 12
    for (auto& sum : sums) asm volatile("vfmadd231ps %1, %1, %0" : "+v"(sum) : "v"(x));
  }
}

}  // namespace dz::kernels::avx2
