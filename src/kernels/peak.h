// What this machine can do at most, so that every speed can be given as a share of it: register-only multiply-add loops with the
// instruction that a form's GEMM uses. The rate follows the clock of the machine, so measure near what it is compared with.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "kernels/table.h"

namespace dz {
class ThreadPool;
}

namespace dz::kernels {

// GFLOP/s (a multiply-add is two) of all threads of `pool` together, at the instruction that `isa` multiplies bf16 or f32 matrices with:
// VFMADD231PS on ymm or zmm, VDPBF16PS, TDPBF16PS. Scalar code is compiled for AVX2, so its limit is AVX2's. The best of three windows, by
// the threads' own CPU time, so that other programs do not lower it; no more than the cores that this process may use.
// dtype: kBF16 or kF32. Takes about `milliseconds`. DZ_CHECK: cpu_has(isa).
double raw_peak_gflops(Isa isa, DType dtype, ThreadPool& pool, double milliseconds = 20);

// The same for the active form: the denominator of the trainer's MFU. At most 30 ms.
double peak_gflops(DType dtype, ThreadPool& pool);

// GB/s of a copy far beyond the caches, bytes read plus bytes written, stores that bypass the cache; all threads of `pool` together.
double copy_gbps(ThreadPool& pool, double milliseconds = 200);

// GB/s of reading the same, each byte once: the limit of decoding, whose weights are read once a token.
double read_gbps(ThreadPool& pool, double milliseconds = 200);

}  // namespace dz::kernels
