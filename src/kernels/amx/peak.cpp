// Independent TDPBF16PS on six accumulator tiles, operands loaded once.
#include "kernels/amx/tiles.h"
#include "kernels/peak_loops.h"

namespace dz::kernels::amx {

void peak_loop(int64_t turns) {
  alignas(64) uint32_t operand[256];
  for (uint32_t& pair : operand) pair = 0x39d239d2u;
  asm volatile("" : : "r"(operand) : "memory");  // as finish_stores(), and `operand` is looked at
  _tile_loadconfig(&kTileConfig);
  _tile_loadd(6, operand, 64);
  _tile_loadd(7, operand, 64);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  for (int64_t turn = 0; turn < turns; ++turn) {
    _tile_dpbf16ps(0, 6, 7);
    _tile_dpbf16ps(1, 6, 7);
    _tile_dpbf16ps(2, 6, 7);
    _tile_dpbf16ps(3, 6, 7);
    _tile_dpbf16ps(4, 6, 7);
    _tile_dpbf16ps(5, 6, 7);
  }
  _tile_release();
}

}  // namespace dz::kernels::amx
