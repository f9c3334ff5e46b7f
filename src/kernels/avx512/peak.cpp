// Independent chains of vfmadd231ps from registers only, small non-zero values so that the multipliers switch and no sum overflows.
#include <immintrin.h>

#include "kernels/peak_loops.h"

namespace dz::kernels::avx512 {

// 24 chains hide the latency of any CPU with two such units.
void peak_loop(int64_t turns) {
  __m512 sums[24];
#pragma GCC unroll 24
  for (auto& sum : sums) sum = _mm512_setzero_ps();
  const __m512 x = _mm512_set1_ps(0.0004f);
  for (int64_t turn = 0; turn < turns; ++turn) {
#pragma GCC unroll 24
    for (auto& sum : sums) asm volatile("vfmadd231ps %1, %1, %0" : "+v"(sum) : "v"(x));
  }
}

}  // namespace dz::kernels::avx512
