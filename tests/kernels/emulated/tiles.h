// AMX tiles in plain memory, so that the packing and indexing of the AMX form can be tested on a CPU without AMX. TDPBF16PS does what the
// hardware was measured to do: a chain over the low halves of the pairs, a chain over the high halves, both from +0, their sum added to the
// tile; denormals flushed (here by the thread's control register). Shapes are checked against the loaded configuration.
//
// Include after nothing and before the code under test: it takes the place of the compiler's intrinsics.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace dz::kernels {
namespace {

struct EmulatedTiles {
  bool configured;
  int64_t rows[8], row_bytes[8];
  uint8_t bytes[8][16][64];
};
thread_local EmulatedTiles emulated_tiles;

void emulated_loadconfig(const void* config) {
  const uint8_t* bytes = static_cast<const uint8_t*>(config);
  emulated_tiles.configured = bytes[0] == 1;
  for (int tile = 0; tile < 8; ++tile) {
    uint16_t row_bytes;
    memcpy(&row_bytes, bytes + 16 + 2 * tile, 2);
    emulated_tiles.row_bytes[tile] = row_bytes;
    emulated_tiles.rows[tile] = bytes[48 + tile];
  }
}

// An unconfigured tile faults on the hardware; here it kills the test just the same.
void require_configured() {
  if (!emulated_tiles.configured) __builtin_trap();
}

void emulated_loadd(int tile, const void* base, int64_t stride) {
  require_configured();
  for (int64_t row = 0; row < emulated_tiles.rows[tile]; ++row) {
    memcpy(emulated_tiles.bytes[tile][row], static_cast<const char*>(base) + row * stride,
           static_cast<unsigned long>(emulated_tiles.row_bytes[tile]));
  }
}

void emulated_zero(int tile) {
  require_configured();
  memset(emulated_tiles.bytes[tile], 0, sizeof emulated_tiles.bytes[tile]);
}

void emulated_stored(int tile, void* base, int64_t stride) {
  require_configured();
  for (int64_t row = 0; row < emulated_tiles.rows[tile]; ++row) {
    memcpy(static_cast<char*>(base) + row * stride, emulated_tiles.bytes[tile][row], static_cast<unsigned long>(emulated_tiles.row_bytes[tile]));
  }
}

float half_of(const uint8_t* pair, int half) {
  uint16_t bits;
  memcpy(&bits, pair + 2 * half, 2);
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  memcpy(&value, &wide, 4);
  return value;
}

void emulated_dpbf16ps(int sum, int a, int b) {
  require_configured();
  const EmulatedTiles& tiles = emulated_tiles;
  if (tiles.rows[a] != tiles.rows[sum] || tiles.row_bytes[b] != tiles.row_bytes[sum] || tiles.row_bytes[a] / 4 != tiles.rows[b]) __builtin_trap();
  for (int64_t i = 0; i < tiles.rows[sum]; ++i) {
    for (int64_t j = 0; j < tiles.row_bytes[sum] / 4; ++j) {
      float low = 0, high = 0, total;
      for (int64_t pair = 0; pair < tiles.rows[b]; ++pair) {
        low = __builtin_fmaf(half_of(tiles.bytes[a][i] + 4 * pair, 0), half_of(tiles.bytes[b][pair] + 4 * j, 0), low);
        high = __builtin_fmaf(half_of(tiles.bytes[a][i] + 4 * pair, 1), half_of(tiles.bytes[b][pair] + 4 * j, 1), high);
      }
      memcpy(&total, tiles.bytes[sum][i] + 4 * j, 4);
      total = total + (low + high);
      memcpy(emulated_tiles.bytes[sum][i] + 4 * j, &total, 4);
    }
  }
}

void emulated_release() { emulated_tiles.configured = false; }

}  // namespace
}  // namespace dz::kernels

#undef _tile_loadconfig
#undef _tile_loadd
#undef _tile_stream_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#undef _tile_release
#undef _tile_zero
#define _tile_loadconfig emulated_loadconfig
#define _tile_loadd emulated_loadd
#define _tile_stream_loadd emulated_loadd
#define _tile_stored emulated_stored
#define _tile_dpbf16ps emulated_dpbf16ps
#define _tile_release emulated_release
#define _tile_zero emulated_zero
