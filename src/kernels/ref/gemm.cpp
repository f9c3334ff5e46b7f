// The matrix product of the contract in scalar code. It works on tiles of 64 x 64 results so that operands are widened and transposed once
// for many uses and the loop over columns can be vectorised; the order of additions into one result is that of gemm.h whatever the tile.
#include "kernels/gemm.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/ref/ref.h"
#include "numerics/functions.h"

namespace dz::kernels::ref {
namespace {

using numerics::fma;
using numerics::round_to;
using numerics::to_float;

constexpr int64_t kTile = 64;
constexpr int64_t kNarrow = 32;  // the width used when a tile has no more columns, such as a head's
constexpr int64_t kBlock = 32;

// One 32-block of both operands as float, extended with +0.
struct Panels {
  float a[kTile][kBlock];
  float b[kBlock][kTile];
};

template <class T>
void pack(const Gemm<T>& g, int64_t row, int64_t rows, int64_t column, int64_t columns, int64_t k, int64_t depth, Panels& panels) {
  for (int64_t i = 0; i < rows; ++i) {
    const T* from = g.a + (row + i) * g.a_row + k * g.a_col;
    for (int64_t p = 0; p < kBlock; ++p) panels.a[i][p] = p < depth ? to_float(from[p * g.a_col]) : 0.0f;
  }
  for (int64_t p = 0; p < kBlock; ++p) {
    const T* from = g.b + k * g.b_row + p * g.b_row + column * g.b_col;
    for (int64_t j = 0; j < kTile; ++j) panels.b[p][j] = 0.0f;
    for (int64_t j = 0; j < columns && p < depth; ++j) panels.b[p][j] = to_float(from[j * g.b_col]);
  }
}

// acc[i] = acc[i] + (even chain + odd chain) over one block, for the first kWidth columns.
template <int64_t kWidth>
void add_block(const Panels& panels, int64_t rows, float (*acc)[kTile]) {
  for (int64_t i = 0; i < rows; ++i) {
    float even[kWidth] = {};
    float odd[kWidth] = {};
    for (int64_t p = 0; p < kBlock; p += 2) {
      const float a0 = panels.a[i][p], a1 = panels.a[i][p + 1];
      for (int64_t j = 0; j < kWidth; ++j) even[j] = fma(a0, panels.b[p][j], even[j]);
      for (int64_t j = 0; j < kWidth; ++j) odd[j] = fma(a1, panels.b[p + 1][j], odd[j]);
    }
    for (int64_t j = 0; j < kWidth; ++j) acc[i][j] = acc[i][j] + (even[j] + odd[j]);
  }
}

template <class T>
void store(const Gemm<T>& g, int64_t row, int64_t rows, int64_t column, int64_t columns, const float (*acc)[kTile]) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      if (g.out == nullptr) {
        float& sum = g.acc[(row + i) * g.acc_stride + column + j];
        sum = g.join ? sum + acc[i][j] : acc[i][j];
        continue;
      }
      T& out = g.out[(row + i) * g.out_stride + column + j];
      float value = acc[i][j];
      if (g.bias != nullptr) value = value + g.bias[column + j];
      if (g.add_to_out) value = to_float(out) + value;
      out = round_to<T>(value);
    }
  }
}

template <class T>
void multiply_tile(const Gemm<T>& g, int64_t row, int64_t column) {
  const int64_t rows = std::min(kTile, g.m - row);
  const int64_t columns = std::min(kTile, g.n - column);
  float acc[kTile][kTile] = {};
  Panels panels;
  if (g.accumulate) {
    for (int64_t i = 0; i < rows; ++i) std::copy_n(g.acc + (row + i) * g.acc_stride + column, columns, acc[i]);
  }
  const int64_t segment = g.k_segment > 0 ? g.k_segment : std::max<int64_t>(g.k, 1);
  for (int64_t begin = 0; begin < g.k; begin += segment) {
    const int64_t end = std::min(g.k, begin + segment);
    for (int64_t k = begin; k < end; k += kBlock) {
      pack(g, row, rows, column, columns, k, std::min(kBlock, end - k), panels);
      columns <= kNarrow ? add_block<kNarrow>(panels, rows, acc) : add_block<kTile>(panels, rows, acc);
    }
  }
  store(g, row, rows, column, columns, acc);
}

}  // namespace

template <class T>
void gemm(const Gemm<T>& g, ThreadPool* pool) {
  const int64_t tile_rows = (g.m + kTile - 1) / kTile;
  const int64_t tile_columns = (g.n + kTile - 1) / kTile;
  const auto tile = [&](int64_t i) { multiply_tile(g, i / tile_columns * kTile, i % tile_columns * kTile); };
  if (pool == nullptr) {
    for (int64_t i = 0; i < tile_rows * tile_columns; ++i) tile(i);
  } else {
    pool->parallel_for(tile_rows * tile_columns, tile);
  }
}

template void gemm(const Gemm<bf16>&, ThreadPool*);
template void gemm(const Gemm<float>&, ThreadPool*);

void fill_gemm(Table& table) {
  table.bf16_forms.gemm = gemm<bf16>;
  table.f32_forms.gemm = gemm<float>;
}

}  // namespace dz::kernels::ref
