// Independent chains of vdpbf16ps from registers only, small non-zero values so that the multipliers switch and no sum overflows.
#include <immintrin.h>

#include "kernels/peak_loops.h"

namespace dz::kernels::avx512_bf16 {

// 24 chains hide the latency of two dependent multiply-adds.
void peak_loop(int64_t turns) {
  __m512 sums[24];
#pragma GCC unroll 24
  for (auto& sum : sums) sum = _mm512_setzero_ps();
  const __m512 x = _mm512_castsi512_ps(_mm512_set1_epi32(0x39d239d2));
  for (int64_t turn = 0; turn < turns; ++turn) {
#pragma GCC unroll 24
    for (auto& sum : sums) asm volatile("vdpbf16ps %1, %1, %0" : "+v"(sum) : "v"(x));
  }
}

}  // namespace dz::kernels::avx512_bf16
