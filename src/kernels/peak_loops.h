// One register-only loop per instruction set, each in its own translation unit. A loop runs `turns` turns of kPeak*Flops operations.
#pragma once

#include <cstdint>

namespace dz::kernels {

namespace avx2 {
inline constexpr int64_t kPeakFlops = 12 * 8 * 2;
void peak_loop(int64_t turns);
}  // namespace avx2

namespace avx512 {
inline constexpr int64_t kPeakFlops = 24 * 16 * 2;
void peak_loop(int64_t turns);
}  // namespace avx512

namespace avx512_bf16 {
inline constexpr int64_t kPeakFlops = 24 * 32 * 2;
void peak_loop(int64_t turns);
}  // namespace avx512_bf16

namespace amx {
inline constexpr int64_t kPeakFlops = 6 * 16 * 16 * 32 * 2;
void peak_loop(int64_t turns);
}  // namespace amx

}  // namespace dz::kernels
