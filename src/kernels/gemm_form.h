// What an instruction set brings to the matrix product: how operands are packed and how a register tile is multiplied. The blocking, the
// threads, the edges and the epilogue are the same for all (gemm_driver.cpp).
//
// K is cut into 32-blocks. A packed panel holds `rows` rows of A (or `cols` columns of B) and, block after block, all that a form needs of
// them for 32 k, in an order that is the form's own business. Everything past an end is +0, so a form never sees an edge.
//
// This header is seen by translation units of every instruction set: only plain data, no inline functions.
#pragma once

#include <cstdint>

namespace dz::kernels {

inline constexpr int64_t kGemmBlock = 32;
inline constexpr int64_t kMaxPackLanes = 32;    // of pack_a, pack_b
inline constexpr int64_t kMaxChunkBytes = 512;  // of one lane in a chunk: bounds the stack of small products

// Where a finished tile goes, from its own corner on.
struct GemmStore {
  void* out = nullptr;
  int64_t stride = 0;  // in elements
  const float* bias = nullptr;
  bool add = false;
};

// Memory that is asked for before it is used: `rows` rows of `lines` cache lines, `stride` bytes from one row to the next.
struct GemmAhead {
  const void* first = nullptr;
  int64_t stride = 0, rows = 0, lines = 0;
};

// tile [rows][cols] += A B over `blocks` 32-blocks, in the contract's order. `fresh`: it starts at +0, whatever it holds.
struct GemmTile {
  const void* a = nullptr;  // a row is a_row bytes after the one before, a 32-block a_block: packed, or as it lies in memory
  int64_t a_row = 0, a_block = 0;
  const void* b = nullptr;  // a packed panel
  int64_t blocks = 0;
  float* tile = nullptr;
  bool fresh = true;
  GemmAhead ahead;   // of what will be read, for L2
  GemmAhead output;  // of what the tile will be written to
};

// Few rows of A times a B whose k are neighbours, as in decoding: x * weight'. B is read once, in the order of memory and without a packed copy.
struct GemmFew {
  int64_t rows = 0;       // of A at most
  int64_t cols = 0;       // columns that one call multiplies
  int64_t row_bytes = 0;  // at most, of one row of packed A for one 32-block

  // The rows of A, `stride` elements apart: `blocks` whole 32-blocks and, where `edge` is not null, one more that lies there [rows][32].
  void (*pack)(const void* source, int64_t stride, int64_t rows, int64_t blocks, const void* edge, void* packed) = nullptr;

  // tile [rows][cols] = packed * B. Column j of B starts at b + j * stride elements; the edge block lies apart, [cols][32].
  // ahead: the place in memory where B is read some calls later; a line there is asked for with each line that is read. Null: nothing is.
  void (*multiply)(const void* packed, int64_t rows, const void* b, int64_t stride, int64_t blocks, const void* edge, const char* ahead,
                   float* tile) = nullptr;
};

struct GemmForm {
  int64_t rows = 0;       // of the register tile
  int64_t cols = 0;       //
  int64_t pack_rows = 0;  // rows that one call of pack_a takes: a multiple of `rows`
  int64_t a_block = 0;    // bytes of a packed panel for one 32-block: rows x 32 elements
  int64_t b_block = 0;    // cols x 32 elements
  int64_t chunk = 0;      // 32-blocks between two visits to the accumulators: a panel of B this long stays in L1. 0: none, all k of a group in
                          // registers, and the walk of gemm_held.cpp

  // One 32-block of pack_rows rows (of `cols` columns), whole. The panels that it fills are panel_stride bytes apart.
  // _k: the 32 k of a lane are neighbours and lanes are `stride` elements apart; _lanes: the other way round.
  using Pack = void (*)(const void* source, int64_t stride, void* panel, int64_t panel_stride);
  Pack pack_a_k = nullptr;
  Pack pack_a_lanes = nullptr;
  Pack pack_b_k = nullptr;
  Pack pack_b_lanes = nullptr;

  // For each of `panels` neighbouring panels of A: tile += panel * b over `blocks` 32-blocks, in the contract's order.
  // tiles: rows x cols f32, row-major, one tile after the other. `fresh`: they start at +0, whatever they hold.
  void (*multiply)(const void* a, int64_t panels, const void* b, int64_t blocks, float* tiles, bool fresh) = nullptr;

  // The walk of gemm_held.cpp; where `chunk` is 0.
  int64_t packed_row = 0;  // bytes from one row of a packed panel of A to the next
  void (*multiply_tile)(const GemmTile& tile) = nullptr;

  GemmFew few;

  // rows x cols of a tile, whose rows are tile_stride apart: out = round((add ? out : nothing) + (sum + bias)). `finish` rounds to the type of the
  // product, `keep` stays in f32.
  using Finish = void (*)(const GemmStore& target, const float* tile, int64_t tile_stride, int64_t rows, int64_t cols);
  Finish finish = nullptr;
  Finish keep = nullptr;

  // Around a run of multiply() on one thread (the tile configuration of AMX); null when there is nothing to do.
  void (*begin)() = nullptr;
  void (*end)() = nullptr;
};

namespace avx2 {
void gemm_finish_bf16(const GemmStore& target, const float* tile, int64_t tile_stride, int64_t rows, int64_t cols);
void gemm_finish_f32(const GemmStore& target, const float* tile, int64_t tile_stride, int64_t rows, int64_t cols);
extern const GemmForm kGemmBf16;
extern const GemmForm kGemmF32;
}  // namespace avx2

namespace avx512 {
void gemm_finish_bf16(const GemmStore& target, const float* tile, int64_t tile_stride, int64_t rows, int64_t cols);
void gemm_finish_f32(const GemmStore& target, const float* tile, int64_t tile_stride, int64_t rows, int64_t cols);
extern const GemmForm kGemmBf16;
extern const GemmForm kGemmF32;
}  // namespace avx512

namespace avx512_bf16 {
void gemm_finish_bf16(const GemmStore& target, const float* tile, int64_t tile_stride, int64_t rows, int64_t cols);
void gemm_finish_f32(const GemmStore& target, const float* tile, int64_t tile_stride, int64_t rows, int64_t cols);
extern const GemmForm kGemmBf16;
}  // namespace avx512_bf16

namespace amx {
extern const GemmForm kGemmBf16;
}  // namespace amx

}  // namespace dz::kernels
