// Small products, and products of some rows: everything on the stack, packed where it is used.
#include <functional>

#include "base/thread_pool.h"
#include "kernels/gemm_job.h"

namespace dz::kernels {
namespace {

constexpr int64_t kSmallTileCols = kSmallCols + kMaxPackLanes;  // the last panel may stand over
static_assert(kSmallRows % kMaxPackLanes == 0);

// Rows [row, row + kSmallRows), columns [col, col + kSmallCols) of the product.
template <class T>
void small_part(const GemmJob<T>& job, int64_t row, int64_t col) {
  const GemmForm& form = job.form;
  const Gemm<T>& product = job.product;
  alignas(64) float tiles[kSmallRows * kSmallTileCols];
  alignas(64) std::byte a_panels[kSmallRows * kMaxChunkBytes];
  alignas(64) std::byte b_panel[kMaxPackLanes * kMaxChunkBytes];
  const int64_t rows = std::min(kSmallRows, product.m - row);
  const int64_t cols = std::min(kSmallCols, product.n - col);
  const int64_t row_panels = pieces(rows, form.rows);
  const int64_t col_panels = pieces(cols, form.cols);
  const auto tile_at = [&](int64_t i, int64_t j) { return tiles + (j * row_panels + i) * job.tile(); };
  const auto each_tile = [&](auto&& body) {
    for (int64_t i = 0; i < row_panels; ++i) {
      for (int64_t j = 0; j < col_panels; ++j) body(row + i * form.rows, col + j * form.cols, tile_at(i, j));
    }
  };
  const int64_t all = job.map.blocks(), chunk = kMaxChunkBytes / job.lane_bytes();
  if (product.accumulate) {
    each_tile([&](int64_t i, int64_t j, float* tile) {
      load_tile(product.acc + i * product.acc_stride + j, product.acc_stride, product.m - i, product.n - j, form, tile);
    });
  } else if (all == 0) {
    each_tile([&](int64_t, int64_t, float* tile) { std::fill_n(tile, job.tile(), 0.0f); });
  }
  {
    const FormInUse in_use(form);
    for (int64_t block = 0; block < all; block += chunk) {
      const int64_t blocks = std::min(chunk, all - block);
      pack_chunk(job.a_pack, job.a, job.map, row, rows, block, blocks, a_panels);
      for (int64_t j = 0; j < col_panels; ++j) {
        pack_chunk(job.b_pack, job.b, job.map, col + j * form.cols, form.cols, block, blocks, b_panel);
        form.multiply(a_panels, row_panels, b_panel, blocks, tile_at(0, j), block == 0 && !product.accumulate);
      }
    }
  }
  each_tile([&](int64_t i, int64_t j, float* tile) { job.finish(i, j, tile); });
}

}  // namespace

template <class T>
void small_gemm(const GemmJob<T>& job, ThreadPool* pool) {
  const int64_t row_parts = pieces(job.product.m, kSmallRows);
  const int64_t parts = row_parts * pieces(job.product.n, kSmallCols);
  const auto part = [&](int64_t i) { small_part(job, i % row_parts * kSmallRows, i / row_parts * kSmallCols); };
  if (pool != nullptr && parts > 1) {
    pool->parallel_for(parts, part);
  } else {
    for (int64_t i = 0; i < parts; ++i) part(i);
  }
}

template void small_gemm(const GemmJob<bf16>&, ThreadPool*);
template void small_gemm(const GemmJob<float>&, ThreadPool*);

}  // namespace dz::kernels
