#include "text/bpe.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <queue>

namespace dz::text {

MergeTable::MergeTable(int64_t expected) {
  const uint64_t size = std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(expected, 8)) * 2);
  slots_.resize(size);
  mask_ = size - 1;
  shift_ = 64 - std::countr_zero(size);
}

void MergeTable::set(int32_t left, int32_t right, Merge merge) {
  const uint64_t key = key_of(left, right);
  uint64_t slot = slot_of(key);
  while (slots_[slot].key != key && slots_[slot].key != kEmpty) slot = (slot + 1) & mask_;
  if (slots_[slot].key == kEmpty) {
    if ((used_ + 1) * 2 > static_cast<int64_t>(slots_.size())) {
      grow();
      return set(left, right, merge);
    }
    ++used_;
  }
  slots_[slot] = {key, merge};
}

void MergeTable::grow() {
  MergeTable larger(static_cast<int64_t>(slots_.size()));
  for (const Slot& slot : slots_)
    if (slot.key != kEmpty) larger.set(static_cast<int32_t>(slot.key >> 32), static_cast<int32_t>(slot.key & 0xFFFFFFFF), slot.merge);
  *this = std::move(larger);
}

namespace {

// Up to here looking at every rank again after each merge is cheaper than keeping a heap.
constexpr size_t kShortPiece = 48;

void merge_short(const MergeTable& table, std::vector<int32_t>& symbols) {
  MergeTable::Merge next[kShortPiece];
  size_t size = symbols.size();
  int32_t* ids = symbols.data();
  for (size_t i = 0; i + 1 < size; ++i) next[i] = table.find(ids[i], ids[i + 1]);
  while (size > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < size; ++i)
      if (next[i].rank < next[best].rank) best = i;
    if (next[best].rank == MergeTable::kNone) break;
    ids[best] = next[best].id;
    std::memmove(ids + best + 1, ids + best + 2, (size - best - 2) * sizeof *ids);
    if (best + 2 < size) std::memmove(next + best, next + best + 1, (size - best - 2) * sizeof *next);
    --size;
    if (best + 1 < size) next[best] = table.find(ids[best], ids[best + 1]);
    if (best > 0) next[best - 1] = table.find(ids[best - 1], ids[best]);
  }
  symbols.resize(size);
}

// Symbols as a linked list over their first positions; a heap entry is stale when its pair has changed since.
class LongPiece {
 public:
  LongPiece(const MergeTable& table, std::vector<int32_t>& symbols) : table_(table), ids_(symbols), next_(symbols.size()), previous_(symbols.size()) {
    const auto size = static_cast<int32_t>(symbols.size());
    for (int32_t i = 0; i < size; ++i) {
      next_[at(i)] = i + 1 < size ? i + 1 : -1;
      previous_[at(i)] = i - 1;
    }
    for (int32_t i = 0; i + 1 < size; ++i) push(i);
  }

  void run() {
    while (!heap_.empty()) {
      const uint64_t top = heap_.top();
      heap_.pop();
      const auto left = static_cast<int32_t>(top & 0xFFFFFFFF);
      if (ids_[at(left)] < 0 || next_[at(left)] < 0) continue;
      const MergeTable::Merge merge = table_.find(ids_[at(left)], ids_[at(next_[at(left)])]);
      if (merge.rank != static_cast<int32_t>(top >> 32)) continue;
      join(left, merge.id);
    }
    std::erase_if(ids_, [](int32_t id) { return id < 0; });
  }

 private:
  static size_t at(int32_t i) { return static_cast<size_t>(i); }

  void push(int32_t left) {
    const MergeTable::Merge merge = table_.find(ids_[at(left)], ids_[at(next_[at(left)])]);
    if (merge.rank != MergeTable::kNone) heap_.push(static_cast<uint64_t>(merge.rank) << 32 | static_cast<uint32_t>(left));
  }

  void join(int32_t left, int32_t id) {
    const int32_t right = next_[at(left)];
    ids_[at(left)] = id;
    ids_[at(right)] = -1;
    next_[at(left)] = next_[at(right)];
    if (next_[at(left)] >= 0) {
      previous_[at(next_[at(left)])] = left;
      push(left);
    }
    if (previous_[at(left)] >= 0) push(previous_[at(left)]);
  }

  const MergeTable& table_;
  std::vector<int32_t>& ids_;
  std::vector<int32_t> next_;
  std::vector<int32_t> previous_;
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> heap_;
};

}  // namespace

void apply_merges(const MergeTable& table, std::vector<int32_t>& symbols) {
  if (symbols.size() <= kShortPiece) return merge_short(table, symbols);
  LongPiece(table, symbols).run();
}

}  // namespace dz::text
