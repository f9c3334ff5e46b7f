#include "kernels/gemm_driver.h"

#include <algorithm>
#include <functional>

#include "base/check.h"
#include "base/thread_pool.h"
#include "kernels/gemm_pack.h"
#include "kernels/gemm_tile.h"
#include "kernels/scratch.h"

namespace dz::kernels {
namespace {

constexpr int64_t round_up(int64_t x, int64_t unit) { return (x + unit - 1) / unit * unit; }
constexpr int64_t pieces(int64_t x, int64_t unit) { return (x + unit - 1) / unit; }

void for_each(ThreadPool* pool, int64_t count, const std::function<void(int64_t)>& body) {
  if (pool != nullptr) {
    pool->parallel_for(count, body);
  } else {
    for (int64_t i = 0; i < count; ++i) body(i);
  }
}

// The product, its form, and what follows from both.
template <class T>
struct Job {
  const GemmForm& form;
  const Gemm<T>& product;
  BlockMap map;
  PackSide a_pack, b_pack;
  Operand<T> a, b;

  Job(const GemmForm& f, const Gemm<T>& p)
      : form(f),
        product(p),
        map(p.k, p.k_segment),
        a_pack(a_side(f)),
        b_pack(b_side(f)),
        a{p.a, p.m, p.a_row, p.a_col},
        b{p.b, p.n, p.b_col, p.b_row} {}
  int64_t tile() const { return form.rows * form.cols; }
};

// ---- Small products: everything on the stack, packed where it is used.

constexpr int64_t kSmallRows = 64, kSmallCols = 128;
constexpr int64_t kSmallTileCols = kSmallCols + kMaxPackLanes;  // the last panel may stand over
static_assert(kSmallRows % kMaxPackLanes == 0);

// Rows [row, row + kSmallRows), columns [col, col + kSmallCols) of the product.
template <class T>
void small_part(const Job<T>& job, int64_t row, int64_t col) {
  const GemmForm& form = job.form;
  alignas(64) float tiles[kSmallRows * kSmallTileCols];
  alignas(64) std::byte a_panels[kSmallRows * kMaxChunkBytes];
  alignas(64) std::byte b_panel[kMaxPackLanes * kMaxChunkBytes];
  const int64_t rows = std::min(kSmallRows, job.product.m - row);
  const int64_t cols = std::min(kSmallCols, job.product.n - col);
  const int64_t row_panels = pieces(rows, form.rows);
  const int64_t col_panels = pieces(cols, form.cols);
  const auto tile_at = [&](int64_t i, int64_t j) { return tiles + (j * row_panels + i) * job.tile(); };
  const auto each_tile = [&](auto&& body) {
    for (int64_t i = 0; i < row_panels; ++i) {
      for (int64_t j = 0; j < col_panels; ++j) body(row + i * form.rows, col + j * form.cols, tile_at(i, j));
    }
  };
  each_tile([&](int64_t i, int64_t j, float* tile) { load_tile(job.product, i, j, form.rows, form.cols, tile); });
  if (form.begin != nullptr) form.begin();
  const int64_t all = job.map.blocks();
  for (int64_t block = 0; block < all; block += form.chunk) {
    const int64_t blocks = std::min(form.chunk, all - block);
    pack_chunk(job.a_pack, job.a, job.map, row, rows, block, blocks, a_panels);
    for (int64_t j = 0; j < col_panels; ++j) {
      pack_chunk(job.b_pack, job.b, job.map, col + j * form.cols, form.cols, block, blocks, b_panel);
      form.multiply(a_panels, row_panels, b_panel, blocks, tile_at(0, j));
    }
  }
  if (form.end != nullptr) form.end();
  each_tile([&](int64_t i, int64_t j, float* tile) { finish_tile(job.product, i, j, form.rows, form.cols, tile); });
}

template <class T>
void small_product(const Job<T>& job, ThreadPool* pool) {
  const int64_t row_parts = pieces(job.product.m, kSmallRows);
  const int64_t parts = row_parts * pieces(job.product.n, kSmallCols);
  for_each(parts == 1 ? nullptr : pool, parts, [&](int64_t part) { small_part(job, part % row_parts * kSmallRows, part / row_parts * kSmallCols); });
}

// ---- Large products: groups of rows, columns and k whose packed operands fit a few MiB, packed by all threads, then multiplied by all.

constexpr int64_t kGroupLaneBytes = 4096;            // of one lane in a group: 2,048 k in bf16, 1,024 in f32
constexpr int64_t kGroupBytes = int64_t{4} << 20;    // of one packed operand: at least 1,024 lanes
constexpr int64_t kPackLanes = 64;                   // of one packing task: whole cache lines of a transposed operand
constexpr int64_t kTaskRows = 256, kTaskCols = 256;  // of one multiplying task: its part of A and its tiles stay in L2

struct Range {
  int64_t begin = 0, size = 0;
  friend bool operator==(const Range&, const Range&) = default;
};

// [0, count) in ranges of at most `limit`, about equal, each but the last a multiple of `unit`.
struct Cut {
  int64_t count, step;
  Cut(int64_t all, int64_t limit, int64_t unit) : count(all), step(round_up(pieces(all, pieces(all, limit)), unit)) {}
  int64_t parts() const { return pieces(count, step); }
  Range operator[](int64_t i) const { return {i * step, std::min(step, count - i * step)}; }
};

// One operand's packed group: chunk after chunk of K, in a chunk panel after panel.
struct PackedGroup {
  Range lanes, blocks;
  std::byte* bytes = nullptr;
  int64_t panels = 0;

  std::byte* chunk(const PackSide& side, int64_t block) const { return bytes + block * panels * side.block_bytes; }
};

struct LargeScratch {
  Scratch a, b, tiles;
};

thread_local LargeScratch large_scratch;  // of the thread that calls
thread_local Scratch task_tiles;          // of each thread that multiplies

template <class T>
class LargeProduct {
 public:
  LargeProduct(const Job<T>& job, ThreadPool* pool)
      : job_(job),
        form_(job.form),
        pool_(pool),
        blocks_(job.map.blocks(), kGroupLaneBytes * form_.rows / form_.a_block, form_.chunk),
        rows_(job.product.m, lane_limit(), kPackLanes),
        cols_(job.product.n, lane_limit(), col_unit()) {
    a_.bytes = large_scratch.a.reserve(group_bytes(job.a_pack, rows_.step));
    b_.bytes = large_scratch.b.reserve(group_bytes(job.b_pack, cols_.step));
    if (blocks_.parts() > 1) tiles_ = reinterpret_cast<float*>(large_scratch.tiles.reserve(tile_floats(rows_.step, cols_.step) * 4));
  }

  void run() {
    for (int64_t i = 0; i < rows_.parts(); ++i) {
      for (int64_t j = 0; j < cols_.parts(); ++j) {
        for (int64_t k = 0; k < blocks_.parts(); ++k) {
          pack(rows_[i], cols_[j], blocks_[k]);
          multiply(k == 0, k + 1 == blocks_.parts());
        }
      }
    }
  }

 private:
  int64_t lane_limit() const { return kGroupBytes / (blocks_.step * (form_.a_block / form_.rows)); }
  int64_t col_unit() const { return round_up(kPackLanes, form_.cols); }
  int64_t group_bytes(const PackSide& side, int64_t lanes) const {
    return (pieces(lanes, side.panel_lanes) + side.call_lanes / side.panel_lanes) * side.block_bytes * blocks_.step;
  }
  int64_t tile_floats(int64_t rows, int64_t cols) const { return pieces(rows, form_.rows) * pieces(cols, form_.cols) * job_.tile(); }

  // Packs what the buffers do not hold already.
  void pack(Range rows, Range cols, Range blocks) {
    const bool new_a = a_.lanes != rows || a_.blocks != blocks;
    const bool new_b = b_.lanes != cols || b_.blocks != blocks;
    a_.lanes = rows;
    b_.lanes = cols;
    a_.blocks = b_.blocks = blocks;
    a_.panels = round_up(rows.size, form_.pack_rows) / form_.rows;
    b_.panels = pieces(cols.size, form_.cols);
    const int64_t a_tasks = new_a ? pieces(rows.size, kPackLanes) : 0;
    const int64_t b_tasks = new_b ? pieces(cols.size, col_unit()) : 0;
    for_each(pool_, a_tasks + b_tasks, [&](int64_t task) {
      if (task < a_tasks) {
        pack_lanes(job_.a_pack, job_.a, a_, task * kPackLanes, kPackLanes);
      } else {
        pack_lanes(job_.b_pack, job_.b, b_, (task - a_tasks) * col_unit(), col_unit());
      }
    });
  }

  void pack_lanes(const PackSide& side, const Operand<T>& operand, const PackedGroup& group, int64_t lane, int64_t count) {
    const int64_t lanes = std::min(count, group.lanes.size - lane);
    for (int64_t block = 0; block < group.blocks.size; block += form_.chunk) {
      const int64_t blocks = std::min(form_.chunk, group.blocks.size - block);
      std::byte* panels = group.chunk(side, block) + lane / side.panel_lanes * blocks * side.block_bytes;
      pack_chunk(side, operand, job_.map, group.lanes.begin + lane, lanes, group.blocks.begin + block, blocks, panels);
    }
  }

  // Tasks of about kTaskRows x kTaskCols, smaller when there would be too few to even out the threads.
  void multiply(bool first, bool last) {
    const int64_t wanted = pool_ == nullptr ? 1 : int64_t{4} * pool_->threads();
    int64_t row_step = round_up(kTaskRows, form_.rows), col_step = round_up(kTaskCols, form_.cols);
    const auto tasks = [&] { return pieces(a_.lanes.size, row_step) * pieces(b_.lanes.size, col_step); };
    while (tasks() < wanted && (row_step > 64 || col_step > 2 * form_.cols)) {
      int64_t& step = row_step >= col_step ? row_step : col_step;
      step = round_up(step / 2, &step == &row_step ? form_.rows : form_.cols);
    }
    const int64_t row_tasks = pieces(a_.lanes.size, row_step);
    for_each(pool_, tasks(), [&](int64_t task) {
      const int64_t row = task % row_tasks * row_step, col = task / row_tasks * col_step;
      multiply_part({row, std::min(row_step, a_.lanes.size - row)}, {col, std::min(col_step, b_.lanes.size - col)}, first, last);
    });
  }

  void multiply_part(Range rows, Range cols, bool first, bool last) {
    const int64_t row_panels = pieces(rows.size, form_.rows), col_panels = pieces(cols.size, form_.cols);
    // A task's tiles lie together; when K has several groups, all tasks' tiles live on in one buffer, each column of tasks after the other.
    float* tiles = tiles_ == nullptr ? reinterpret_cast<float*>(task_tiles.reserve(tile_floats(rows.size, cols.size) * 4))
                                     : tiles_ + tile_floats(a_.lanes.size, cols.begin) + tile_floats(rows.begin, cols.size);
    const auto each_tile = [&](auto&& body) {
      for (int64_t i = 0; i < row_panels; ++i) {  // along the rows of C, as they lie in memory
        for (int64_t j = 0; j < col_panels; ++j) {
          body(a_.lanes.begin + rows.begin + i * form_.rows, b_.lanes.begin + cols.begin + j * form_.cols,
               tiles + (j * row_panels + i) * job_.tile());
        }
      }
    };
    if (first) each_tile([&](int64_t i, int64_t j, float* tile) { load_tile(job_.product, i, j, form_.rows, form_.cols, tile); });
    if (form_.begin != nullptr) form_.begin();
    for (int64_t block = 0; block < a_.blocks.size; block += form_.chunk) {
      const int64_t blocks = std::min(form_.chunk, a_.blocks.size - block);
      const std::byte* a = a_.chunk(job_.a_pack, block) + rows.begin / form_.rows * blocks * form_.a_block;
      const std::byte* b = b_.chunk(job_.b_pack, block) + cols.begin / form_.cols * blocks * form_.b_block;
      for (int64_t j = 0; j < col_panels; ++j) {
        form_.multiply(a, row_panels, b + j * blocks * form_.b_block, blocks, tiles + j * row_panels * job_.tile());
      }
    }
    if (form_.end != nullptr) form_.end();
    if (last) each_tile([&](int64_t i, int64_t j, float* tile) { finish_tile(job_.product, i, j, form_.rows, form_.cols, tile); });
  }

  const Job<T>& job_;
  const GemmForm& form_;
  ThreadPool* pool_;
  Cut blocks_, rows_, cols_;
  PackedGroup a_, b_;
  float* tiles_ = nullptr;
};

// Few rows: packing B apart would read it twice for nothing. Little work, some microseconds: waking threads costs more than they bring.
constexpr int64_t kFewRows = 32, kLittleWork = 1 << 20;

}  // namespace

template <class T>
void run_gemm(const GemmForm& form, const Gemm<T>& product, ThreadPool* pool) {
  if (product.m <= 0 || product.n <= 0) return;
  DZ_CHECK(product.k >= 0, "k", product.k);
  DZ_CHECK(product.out != nullptr || product.acc != nullptr, "m", product.m);
  const Job<T> job(form, product);
  const int64_t work = product.m * product.n * product.k;
  if (work <= kLittleWork) {
    small_product(job, nullptr);
  } else if (product.m <= kFewRows || (product.m <= kSmallRows && product.n <= kSmallCols && pool == nullptr)) {
    small_product(job, pool);
  } else {
    LargeProduct<T>(job, pool).run();
  }
}

template void run_gemm(const GemmForm&, const Gemm<bf16>&, ThreadPool*);
template void run_gemm(const GemmForm&, const Gemm<float>&, ThreadPool*);

}  // namespace dz::kernels
