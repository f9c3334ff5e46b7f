// The merge step of byte-pair encoding: a table of pairs and the loop that applies them to one piece.
#pragma once

#include <cstdint>
#include <vector>

namespace dz::text {

// Pair of ids -> rank and merged id: open addressing in one flat array, because the lookup is the inner loop of encoding.
class MergeTable {
 public:
  static constexpr int32_t kNone = INT32_MAX;
  struct Merge {
    int32_t rank = kNone;
    int32_t id = -1;
  };

  explicit MergeTable(int64_t expected = 0);
  void set(int32_t left, int32_t right, Merge merge);  // a pair that is set again takes the later merge
  Merge find(int32_t left, int32_t right) const {
    const uint64_t key = key_of(left, right);
    for (uint64_t slot = slot_of(key);; slot = (slot + 1) & mask_) {
      if (slots_[slot].key == key) return slots_[slot].merge;
      if (slots_[slot].key == kEmpty) return {};
    }
  }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t{0};  // ids are not negative, so no pair has this key
  struct Slot {
    uint64_t key = kEmpty;
    Merge merge;
  };
  static uint64_t key_of(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  uint64_t slot_of(uint64_t key) const { return (key * 0x9E3779B97F4A7C15u) >> shift_ & mask_; }
  void grow();

  std::vector<Slot> slots_;
  uint64_t mask_ = 0;
  int shift_ = 0;
  int64_t used_ = 0;
};

// Merges in place: always the pair of lowest rank, the leftmost of equal ones. Long pieces go through a heap: n log n, not n * n.
void apply_merges(const MergeTable& table, std::vector<int32_t>& symbols);

}  // namespace dz::text
