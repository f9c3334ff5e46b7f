// The walk of AMX, which multiplies faster than L3 brings what it needs. One operand is held: a part of it is packed by the thread that uses it and
// stays in that thread's L2, while the other one passes. Rows of A pass as they lie in memory where the caches allow; B is packed piece by piece,
// once for all parts. What a tile will need next is asked for while it is multiplied, and its output's lines too: the loop waits for nothing else.
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
// Of the L2 of a core, in quarters: one for a piece of B that passes, two for the part, three where that makes the part the whole operand. The rest
// goes through: rows of A, lines of the output. With three for every part the head of 190m lost a fifth of its speed.
constexpr int64_t kQuarters = 4, kPieceQuarters = 1, kPartQuarters = 2, kWholeQuarters = 3;
// Lanes come in whole cache lines of an operand that lies the other way round.
constexpr int64_t kLaneUnit = 32;
static_assert(kLaneUnit % kMaxPackLanes == 0);
// Lanes of one passing item: enough to read a panel of the part from L2 for several panels. When K has several groups, a part is packed again for
// each item, which more lanes have to pay for.
constexpr int64_t kShortRange = 256, kLongRange = 1024;

// Rows that are a multiple of this apart meet in one set of L1, which does not hold a tile's: they are packed.
constexpr int64_t kSetStride = 4096;

// Packed panels are read in long strides: on pages of 4 KiB that would cost a TLB miss each.
constexpr int64_t kHugePage = int64_t{2} << 20;

// Some lanes of an operand for some 32-blocks: packed panel after panel, or rows of A as they lie in memory.
struct Panels {
  Range lanes, blocks;
  const std::byte* bytes = nullptr;
  int64_t count = 0, panel_bytes = 0;
  int64_t row_bytes = 0, block_bytes = 0;  // of A, from one to the next
};

// What each thread that multiplies keeps.
struct ThreadMemory {
  Scratch held, passing, tile, sums, shared;
};
thread_local ThreadMemory thread_memory;

// Sums of an item between two groups of K; rows and columns are counted as in the product.
struct Sums {
  float* data = nullptr;
  int64_t stride = 0, first_row = 0, first_col = 0;
  float* at(int64_t row, int64_t col) const { return data + (row - first_row) * stride + (col - first_col); }
};

// A passing B that several parts meet: whoever needs a piece first packs it, for all. It lies in L3; one that would not is packed for each part.
class SharedPieces {
 public:
  void make_room(int64_t pieces, int64_t piece_bytes, Scratch& memory) {
    constexpr int64_t kLimit = int64_t{32} << 20;
    if (pieces * piece_bytes > kLimit) return;
    bytes_ = memory.reserve(pieces * piece_bytes);
    piece_bytes_ = piece_bytes;
    states_ = std::make_unique<std::atomic<State>[]>(static_cast<size_t>(pieces));
    for (int64_t i = 0; i < pieces; ++i) states_[static_cast<size_t>(i)] = State::kMissing;
  }
  bool empty() const { return bytes_ == nullptr; }

  // Piece i, which pack(bytes) writes when nobody has yet.
  template <class Pack>
  const std::byte* get(int64_t i, const Pack& pack) const {
    std::atomic<State>& state = states_[static_cast<size_t>(i)];
    std::byte* const bytes = bytes_ + i * piece_bytes_;
    State seen = State::kMissing;
    if (state.compare_exchange_strong(seen, State::kBegun)) {
      pack(bytes);
      state = State::kPacked;
      state.notify_all();
    }
    while (state != State::kPacked) state.wait(State::kBegun);
    return bytes;
  }

 private:
  enum class State : int { kMissing, kBegun, kPacked };
  std::byte* bytes_ = nullptr;
  int64_t piece_bytes_ = 0;
  std::unique_ptr<std::atomic<State>[]> states_;
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
    if (a_held_ && held_.parts() > 1) {
      shared_.make_room(passing_.parts() * pieces_of_item() * blocks_.parts(), round_up(piece_lanes(), form_.cols) * blocks_.step * job.lane_bytes(),
                        thread_memory.shared);
    }
  }

  // Each thread begins at parts of its own, then helps with those that others began.
  void run(ThreadPool* pool) {
    const auto work = [this](int64_t worker) {
      const FormInUse in_use(form_);
      Panels held;
      for (int64_t turn = 0; turn < held_.parts(); ++turn) {
        const int64_t part = (worker * held_.parts() / threads_ + turn) % held_.parts();
        const int64_t first = part * passing_.parts() / held_.parts();  // else all would pack the same piece of B first, or wait for it
        for (int64_t i; (i = next_[static_cast<size_t>(part)]++) < passing_.parts();) {
          multiply_item(held_[part], passing_[(first + i) % passing_.parts()], held);
        }
      }
    };
    if (pool == nullptr) {
      work(0);
    } else {
      pool->parallel_for(threads_, work);
    }
  }

 private:
  using Target = typename GemmJob<T>::Target;
  static constexpr int64_t kSize = sizeof(T), kFloat = sizeof(float);

  const PackSide& held_side() const { return a_held_ ? job_.a_pack : job_.b_pack; }
  const Operand<T>& held_operand() const { return a_held_ ? job_.a : job_.b; }
  const Operand<T>& passing_operand() const { return a_held_ ? job_.b : job_.a; }
  int64_t held_lanes() const { return held_operand().lanes; }
  int64_t passing_lanes() const { return passing_operand().lanes; }
  int64_t lanes_in(int64_t quarters) const {
    return std::max(kLaneUnit, l2_bytes() / kQuarters * quarters / (blocks_.step * job_.lane_bytes()) / kLaneUnit * kLaneUnit);
  }

  // Smaller parts than fit, if there are threads that would otherwise pack the same part for a few passing lanes.
  int64_t held_limit() const {
    const int64_t all = round_up(held_lanes(), kLaneUnit);
    int64_t limit = all <= lanes_in(kWholeQuarters) ? all : lanes_in(kPartQuarters);
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
  int64_t piece_lanes() const { return std::min(lanes_in(kPieceQuarters), kShortRange); }
  int64_t pieces_of_item() const { return pieces(passing_.step, piece_lanes()); }

  int64_t a_row_bytes() const { return job_.a.lane_stride * kSize; }
  bool direct() const { return job_.map.whole() && a_row_bytes() % kSetStride != 0; }

  Panels packed(const PackSide& side, Range lanes, Range blocks, const std::byte* bytes) const {
    return {.lanes = lanes,
            .blocks = blocks,
            .bytes = bytes,
            .count = pieces(lanes.size, side.panel_lanes),
            .panel_bytes = side.block_bytes * blocks.size,
            .row_bytes = form_.packed_row,
            .block_bytes = side.block_bytes};
  }

  Panels pack(const PackSide& side, const Operand<T>& operand, Range lanes, Range blocks, Scratch& memory) const {
    std::byte* bytes = memory.reserve(std::max(kHugePage, round_up(lanes.size, side.call_lanes) * blocks.size * job_.lane_bytes()));
    pack_chunk(side, operand, job_.map, lanes.begin, lanes.size, blocks.begin, blocks.size, bytes);
    return packed(side, lanes, blocks, bytes);
  }

  // A panel of A.
  Panels rows_of_a(Range rows, Range blocks) const {
    if (rows.size < form_.rows || !direct()) return pack(job_.a_pack, job_.a, rows, blocks, thread_memory.passing);
    return {.lanes = rows,
            .blocks = blocks,
            .bytes = reinterpret_cast<const std::byte*>(a_at(rows.begin, blocks)),
            .count = 1,
            .row_bytes = a_row_bytes(),
            .block_bytes = kGemmBlock * kSize};
  }
  const T* a_at(int64_t row, Range blocks) const { return job_.a.data + row * job_.a.lane_stride + job_.map.begin(blocks.begin); }

  // The rows of the panel after those that end at `row`.
  GemmAhead rows_ahead(int64_t row, Range blocks) const {
    const int64_t rows = std::clamp<int64_t>(job_.product.m - row, 0, form_.rows);
    return {.first = rows == 0 ? nullptr : a_at(row, blocks),
            .stride = a_row_bytes(),
            .rows = rows,
            .lines = pieces(blocks.size * kGemmBlock * kSize, kLine)};
  }

  // A piece of B. An item begins with a piece of its own, so that no two of them share one.
  Panels piece_of_b(Range cols, int64_t k) const {
    const Range blocks = blocks_[k];
    if (shared_.empty()) return pack(job_.b_pack, job_.b, cols, blocks, thread_memory.passing);
    const int64_t item = cols.begin / passing_.step, in_item = cols.begin % passing_.step / piece_lanes();
    const int64_t index = (item * pieces_of_item() + in_item) * blocks_.parts() + k;
    const auto pack_piece = [&](std::byte* bytes) {
      pack_chunk(job_.b_pack, job_.b, job_.map, cols.begin, cols.size, blocks.begin, blocks.size, bytes);
    };
    return packed(job_.b_pack, cols, blocks, shared_.get(index, pack_piece));
  }

  void multiply_item(Range part, Range passing, Panels& held) {
    const Sums sums = blocks_.parts() == 1 ? Sums{} : sums_of(a_held_ ? part : passing, a_held_ ? passing : part);
    for (int64_t k = 0; k < blocks_.parts(); ++k) {
      const Range blocks = blocks_[k];
      if (held.lanes != part || held.blocks != blocks || held.bytes == nullptr) {
        held = pack(held_side(), held_operand(), part, blocks, thread_memory.held);
      }
      const int64_t unit = a_held_ ? piece_lanes() : form_.rows, end = passing.begin + passing.size;
      for (int64_t lane = passing.begin; lane < end; lane += unit) {
        const Range lanes{lane, std::min(unit, end - lane)};
        if (a_held_) {
          multiply(held, piece_of_b(lanes, k), k, sums, {});
        } else {
          multiply(rows_of_a(lanes, blocks), held, k, sums, rows_ahead(lane + unit, blocks));
        }
      }
    }
  }

  // The accumulators of the product where it has some, they are scratch when there is an output; else, and where they keep what the sums are added
  // to, a buffer of the item's size.
  Sums sums_of(Range rows, Range cols) const {
    if (job_.product.acc != nullptr && !job_.product.join) return {job_.product.acc, job_.product.acc_stride};
    float* data = reinterpret_cast<float*>(thread_memory.sums.reserve(rows.size * cols.size * kFloat));
    return {data, cols.size, rows.begin, cols.begin};
  }

  // Tile by tile, each over all k of the group, along the rows of the output: written column by column, most of the time went into waiting for lines
  // of the output (nano's head: 360 against 1,030 GFLOP/s).
  void multiply(const Panels& a, const Panels& b, int64_t k, const Sums& sums, const GemmAhead& ahead) const {
    const bool last = k + 1 == blocks_.parts();
    const Sums from = k == 0 ? Sums{job_.product.acc, job_.product.acc_stride} : sums;
    GemmTile tile{.a_row = a.row_bytes,
                  .a_block = a.block_bytes,
                  .blocks = a.blocks.size,
                  .tile = reinterpret_cast<float*>(thread_memory.tile.reserve(job_.tile() * kFloat)),
                  .fresh = k == 0 && !job_.product.accumulate,
                  .ahead = ahead};
    const int64_t ahead_rows = pieces(ahead.rows, a.count * b.count);
    for (int64_t i = 0; i < a.count; ++i) {
      const int64_t row = a.lanes.begin + i * form_.rows, rows = std::min(form_.rows, job_.product.m - row);
      tile.a = a.bytes + i * a.panel_bytes;
      for (int64_t j = 0; j < b.count; ++j) {
        const int64_t col = b.lanes.begin + j * form_.cols, cols = std::min(form_.cols, job_.product.n - col);
        tile.b = b.bytes + j * b.panel_bytes;
        const int64_t asked = (i * b.count + j) * ahead_rows;
        tile.ahead.first = static_cast<const std::byte*>(ahead.first) + asked * ahead.stride;
        tile.ahead.rows = std::clamp<int64_t>(ahead.rows - asked, 0, ahead_rows);
        const Target to = last ? job_.target(row, col) : Target{{.out = sums.at(row, col), .stride = sums.stride}, form_.keep, kFloat};
        tile.output = {.first = to.store.out, .stride = to.store.stride * to.size, .rows = rows, .lines = pieces(cols * to.size, kLine)};
        if (!tile.fresh) load_tile(from.at(row, col), from.stride, rows, cols, form_, tile.tile);
        form_.multiply_tile(tile);
        to.finish(to.store, tile.tile, form_.cols, rows, cols);
      }
    }
  }

  const GemmJob<T>& job_;
  const GemmForm& form_;
  const int64_t threads_;
  const bool a_held_;
  const Cut blocks_, held_, passing_;
  const std::unique_ptr<std::atomic<int64_t>[]> next_;  // items of a part that are taken
  SharedPieces shared_;
};

}  // namespace

template <class T>
void held_gemm(const GemmJob<T>& job, ThreadPool* pool) {
  HeldProduct<T>(job, pool).run(pool);
}

template void held_gemm(const GemmJob<bf16>&, ThreadPool*);
template void held_gemm(const GemmJob<float>&, ThreadPool*);

}  // namespace dz::kernels
