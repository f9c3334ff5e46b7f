// The walk of forms whose multiplying takes most of the time: groups of rows, columns and k whose packed operands fit a few MiB, packed once by all
// threads, then multiplied by all. A byte of a packed operand is used for some thousand cycles, so that its way through L3 does not show.
#include <functional>

#include "base/thread_pool.h"
#include "kernels/gemm_job.h"
#include "kernels/scratch.h"

namespace dz::kernels {
namespace {

void for_each(ThreadPool* pool, int64_t count, const std::function<void(int64_t)>& body) {
  if (pool != nullptr) {
    pool->parallel_for(count, body);
  } else {
    for (int64_t i = 0; i < count; ++i) body(i);
  }
}

constexpr int64_t kGroupLaneBytes = 4096;            // of one lane in a group: 2,048 k in bf16, 1,024 in f32
constexpr int64_t kGroupBytes = int64_t{4} << 20;    // of one packed operand: at least 1,024 lanes
constexpr int64_t kPackLanes = 64;                   // of one packing task: whole cache lines of a transposed operand
constexpr int64_t kTaskRows = 256, kTaskCols = 256;  // of one multiplying task: its part of A and its tiles stay in L2

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
class GroupedProduct {
 public:
  GroupedProduct(const GemmJob<T>& job, ThreadPool* pool)
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
    const Gemm<T>& product = job_.product;
    if (first && product.accumulate) {
      each_tile([&](int64_t i, int64_t j, float* tile) {
        load_tile(product.acc + i * product.acc_stride + j, product.acc_stride, product.m - i, product.n - j, form_, tile);
      });
    }
    const FormInUse in_use(form_);
    for (int64_t block = 0; block < a_.blocks.size; block += form_.chunk) {
      const int64_t blocks = std::min(form_.chunk, a_.blocks.size - block);
      const std::byte* a = a_.chunk(job_.a_pack, block) + rows.begin / form_.rows * blocks * form_.a_block;
      const std::byte* b = b_.chunk(job_.b_pack, block) + cols.begin / form_.cols * blocks * form_.b_block;
      for (int64_t j = 0; j < col_panels; ++j) {
        form_.multiply(a, row_panels, b + j * blocks * form_.b_block, blocks, tiles + j * row_panels * job_.tile(),
                       first && block == 0 && !product.accumulate);
      }
    }
    if (last) each_tile([&](int64_t i, int64_t j, float* tile) { job_.finish(i, j, tile); });
  }

  const GemmJob<T>& job_;
  const GemmForm& form_;
  ThreadPool* pool_;
  Cut blocks_, rows_, cols_;
  PackedGroup a_, b_;
  float* tiles_ = nullptr;
};

}  // namespace

template <class T>
void grouped_gemm(const GemmJob<T>& job, ThreadPool* pool) {
  GroupedProduct<T>(job, pool).run();
}

template void grouped_gemm(const GemmJob<bf16>&, ThreadPool*);
template void grouped_gemm(const GemmJob<float>&, ThreadPool*);

}  // namespace dz::kernels
