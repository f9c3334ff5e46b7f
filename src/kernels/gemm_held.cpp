// The walk of AMX, which multiplies faster than L3 brings what it needs. One operand is held: a part of it is packed by the thread that uses it and
// stays in that thread's L2. The other one passes: some of its lanes are packed, multiplied with all of the part, and forgotten. Threads share
// nothing but the counters that hand out the work, so there is no barrier, and no packed byte goes through memory.
#include <atomic>
#include <memory>

#include "base/thread_pool.h"
#include "kernels/cpu.h"
#include "kernels/gemm_job.h"
#include "kernels/scratch.h"

namespace dz::kernels {
namespace {

// K in groups: a lane is at most this long packed (2,048 k in bf16), so that a part has lanes enough to pay for what passes.
constexpr int64_t kGroupLaneBytes = 4096;
// Of the L2 of a core: half for the part, a quarter for what passes; sums and the lines on their way to the output need the rest.
constexpr int64_t kHeldShare = 2, kPassingShare = 4;
// Lanes come in whole cache lines of an operand that lies the other way round.
constexpr int64_t kLaneUnit = 32;
static_assert(kLaneUnit % kMaxPackLanes == 0);
// Lanes of one passing item: enough to read a panel of the part from L2 for several panels. When K has several groups, a part is packed again for
// each item, which more lanes have to pay for.
constexpr int64_t kShortRange = 256, kLongRange = 1024;

// Packed panels are read in long strides: on pages of 4 KiB that would cost a TLB miss each.
constexpr int64_t kHugePage = int64_t{2} << 20;

// Some lanes of an operand for some 32-blocks, packed panel after panel.
struct Packed {
  Range lanes, blocks;
  const std::byte* bytes = nullptr;
  int64_t panels = 0;
};

// What each thread that multiplies keeps.
struct ThreadMemory {
  Scratch held, passing, tile, sums;
};
thread_local ThreadMemory thread_memory;

// Sums of an item between two groups of K; rows and columns are counted as in the product.
struct Sums {
  float* data = nullptr;
  int64_t stride = 0, first_row = 0, first_col = 0;
  float* at(int64_t row, int64_t col) const { return data + (row - first_row) * stride + (col - first_col); }
};

template <class T>
class HeldProduct {
 public:
  HeldProduct(const GemmJob<T>& job, ThreadPool* pool)
      : job_(job),
        form_(job.form),
        threads_(pool == nullptr ? 1 : pool->threads()),
        // Whose packing is a transposition, and so the dearer one: dy in dW, else the weights.
        a_held_(job.product.a_col != 1),
        blocks_(job.map.blocks(), kGroupLaneBytes / job.lane_bytes(), 1),
        held_(held_lanes(), held_limit(), kLaneUnit),
        passing_(passing_lanes(), passing_limit(), kLaneUnit),
        next_(new std::atomic<int64_t>[static_cast<size_t>(held_.parts())]) {
    for (int64_t part = 0; part < held_.parts(); ++part) next_[static_cast<size_t>(part)] = 0;
  }

  // Each thread begins at parts of its own, then helps with those that others began.
  void run(ThreadPool* pool) {
    const auto work = [this](int64_t worker) {
      const FormInUse in_use(form_);
      Packed held;
      for (int64_t i = 0; i < held_.parts(); ++i) {
        const int64_t part = (worker * held_.parts() / threads_ + i) % held_.parts();
        for (int64_t item; (item = next_[static_cast<size_t>(part)]++) < passing_.parts();) multiply_item(held_[part], passing_[item], held);
      }
    };
    if (pool == nullptr) {
      work(0);
    } else {
      pool->parallel_for(threads_, work);
    }
  }

 private:
  const PackSide& held_side() const { return a_held_ ? job_.a_pack : job_.b_pack; }
  const PackSide& passing_side() const { return a_held_ ? job_.b_pack : job_.a_pack; }
  const Operand<T>& held_operand() const { return a_held_ ? job_.a : job_.b; }
  const Operand<T>& passing_operand() const { return a_held_ ? job_.b : job_.a; }
  int64_t held_lanes() const { return held_operand().lanes; }
  int64_t passing_lanes() const { return passing_operand().lanes; }
  int64_t lanes_in(int64_t bytes) const { return std::max(kLaneUnit, bytes / (blocks_.step * job_.lane_bytes()) / kLaneUnit * kLaneUnit); }

  // Smaller parts than fit, if there are threads that would otherwise pack the same part for a few passing lanes.
  int64_t held_limit() const {
    int64_t limit = std::min(lanes_in(l2_bytes() / kHeldShare), round_up(held_lanes(), kLaneUnit));
    const auto passing_each = [&] { return passing_lanes() * std::min(pieces(held_lanes(), limit), threads_) / threads_; };
    while (limit > kLaneUnit && pieces(held_lanes(), limit) < threads_ && passing_each() < limit) limit = round_up(limit / 2, kLaneUnit);
    return limit;
  }

  // Lanes of one item. In one group of K the part stays packed from item to item, so that many small ones even out the threads; in several it does
  // not.
  int64_t passing_limit() const {
    const int64_t sharing = pieces(threads_, held_.parts());
    const bool stays = blocks_.parts() == 1;
    const int64_t even = threads_ == 1 ? passing_lanes() : pieces(passing_lanes(), stays ? 4 * sharing : sharing);
    return std::min(stays ? kShortRange : kLongRange, round_up(even, kLaneUnit));
  }
  int64_t group_lanes() const { return std::min(lanes_in(l2_bytes() / kPassingShare), kShortRange); }

  Packed pack(const PackSide& side, const Operand<T>& operand, Range lanes, Range blocks, Scratch& memory) const {
    Packed packed{.lanes = lanes, .blocks = blocks, .panels = round_up(lanes.size, side.call_lanes) / side.panel_lanes};
    std::byte* bytes = memory.reserve(std::max(kHugePage, packed.panels * side.block_bytes * blocks.size));
    pack_chunk(side, operand, job_.map, lanes.begin, lanes.size, blocks.begin, blocks.size, bytes);
    packed.bytes = bytes;
    return packed;
  }

  void multiply_item(Range part, Range passing, Packed& held) {
    const Sums sums = blocks_.parts() == 1 ? Sums{} : sums_of(a_held_ ? part : passing, a_held_ ? passing : part);
    for (int64_t k = 0; k < blocks_.parts(); ++k) {
      if (held.lanes != part || held.blocks != blocks_[k] || held.bytes == nullptr) {
        held = pack(held_side(), held_operand(), part, blocks_[k], thread_memory.held);
      }
      const int64_t step = group_lanes();
      for (int64_t lane = 0; lane < passing.size; lane += step) {
        const Range group{passing.begin + lane, std::min(step, passing.size - lane)};
        const Packed packed = pack(passing_side(), passing_operand(), group, blocks_[k], thread_memory.passing);
        a_held_ ? multiply(held, packed, k, sums) : multiply(packed, held, k, sums);
      }
    }
  }

  // The accumulators of the product where it has some, they are scratch when there is an output; else, and where they keep what the sums are added
  // to, a buffer of the item's size.
  Sums sums_of(Range rows, Range cols) const {
    if (job_.product.acc != nullptr && !job_.product.join) return {job_.product.acc, job_.product.acc_stride};
    float* data = reinterpret_cast<float*>(thread_memory.sums.reserve(rows.size * cols.size * static_cast<int64_t>(sizeof(float))));
    return {data, cols.size, rows.begin, cols.begin};
  }

  // Tile by tile, each over all k of the group, along the rows of the output: written column by column, most of the time went into waiting for lines
  // of the output (nano's head: 360 against 1,030 GFLOP/s).
  void multiply(const Packed& a, const Packed& b, int64_t k, const Sums& sums) const {
    const int64_t row_panels = pieces(a.lanes.size, form_.rows), col_panels = pieces(b.lanes.size, form_.cols);
    const bool last = k + 1 == blocks_.parts(), fresh = k == 0 && !job_.product.accumulate;
    const Sums from = k == 0 ? Sums{job_.product.acc, job_.product.acc_stride} : sums;
    float* const tile = reinterpret_cast<float*>(thread_memory.tile.reserve(job_.tile() * static_cast<int64_t>(sizeof(float))));
    for (int64_t i = 0; i < row_panels; ++i) {
      const int64_t row = a.lanes.begin + i * form_.rows, rows = std::min(form_.rows, job_.product.m - row);
      for (int64_t j = 0; j < col_panels; ++j) {
        const int64_t col = b.lanes.begin + j * form_.cols, cols = std::min(form_.cols, job_.product.n - col);
        if (!fresh) load_tile(from.at(row, col), from.stride, rows, cols, form_, tile);
        form_.multiply(a.bytes + i * a.blocks.size * form_.a_block, 1, b.bytes + j * b.blocks.size * form_.b_block, a.blocks.size, tile, fresh);
        if (last) {
          job_.finish(row, col, tile);
        } else {
          form_.keep({.out = sums.at(row, col), .stride = sums.stride}, tile, form_.cols, rows, cols);
        }
      }
    }
  }

  const GemmJob<T>& job_;
  const GemmForm& form_;
  const int64_t threads_;
  const bool a_held_;
  const Cut blocks_, held_, passing_;
  const std::unique_ptr<std::atomic<int64_t>[]> next_;  // items of a part that are taken
};

}  // namespace

template <class T>
void held_gemm(const GemmJob<T>& job, ThreadPool* pool) {
  HeldProduct<T>(job, pool).run(pool);
}

template void held_gemm(const GemmJob<bf16>&, ThreadPool*);
template void held_gemm(const GemmJob<float>&, ThreadPool*);

}  // namespace dz::kernels
