// Which instruction sets this CPU has and the operating system lets a process use.
#pragma once

#include <cstdint>
#include <string>

namespace dz::kernels {

struct CpuFeatures {
  bool avx2 = false;    // with FMA
  bool avx512 = false;  // F, BW, DQ, VL
  bool avx512_bf16 = false;
  bool amx = false;  // TILE and BF16, and the kernel granted the tile registers to this process
};

// Asked once, before threads exist where possible: the permission for tiles is inherited by threads started later.
const CpuFeatures& cpu_features();

int64_t l2_bytes();  // the L2 cache of one core; 1 MiB where the system does not say

std::string cpu_name();  // the brand string, or "x86-64"

}  // namespace dz::kernels
