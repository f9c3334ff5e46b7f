// The tile configuration of every AMX loop here: palette 1, all eight tiles 16 rows of 64 bytes.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "numerics/rounding.h"

namespace dz::kernels::amx {
namespace {

struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);

constexpr TileConfig kTileConfig{};

// The compiler's tile loads do not tell it that they read memory: what was stored before must be there first.
DZ_INLINE void finish_stores() { asm volatile("" : : : "memory"); }

}  // namespace
}  // namespace dz::kernels::amx
