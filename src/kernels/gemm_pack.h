// Packing of whole operands and what a packed operand looks like in memory.
#pragma once

#include <cstddef>

#include "kernels/gemm_form.h"

namespace dz::kernels {

// The k of an operand as 32-blocks that restart at each segment.
struct BlockMap {
  int64_t k = 0;
  int64_t segment = 0;  // > 0
  int64_t segment_blocks = 0;

  BlockMap(int64_t all_k, int64_t k_segment)
      : k(all_k), segment(k_segment > 0 ? k_segment : (all_k > 0 ? all_k : 1)), segment_blocks((segment + kGemmBlock - 1) / kGemmBlock) {}
  int64_t blocks() const { return k / segment * segment_blocks + (k % segment + kGemmBlock - 1) / kGemmBlock; }
  bool whole() const { return k % kGemmBlock == 0 && segment % kGemmBlock == 0; }  // no block ends early
  int64_t begin(int64_t block) const { return block / segment_blocks * segment + block % segment_blocks * kGemmBlock; }
  int64_t end(int64_t block) const {
    const int64_t segment_end = (block / segment_blocks + 1) * segment;
    const int64_t full = begin(block) + kGemmBlock;
    const int64_t limit = segment_end < k ? segment_end : k;
    return full < limit ? full : limit;
  }
};

// Lanes are the rows of A or the columns of B; element (lane, k) at data[lane * lane_stride + k * k_stride].
template <class T>
struct Operand {
  const T* data = nullptr;
  int64_t lanes = 0;
  int64_t lane_stride = 0;
  int64_t k_stride = 0;
};

// How one side of a form packs.
struct PackSide {
  int64_t panel_lanes = 0;  // lanes of a panel
  int64_t call_lanes = 0;   // lanes of one call
  int64_t block_bytes = 0;  // of a panel
  GemmForm::Pack from_k = nullptr;
  GemmForm::Pack from_lanes = nullptr;
};

PackSide a_side(const GemmForm& form);
PackSide b_side(const GemmForm& form);

// Packs the lanes [lane, lane + lanes) for the 32-blocks [block, block + blocks) to `panels`: panel after panel, each `blocks` blocks long.
// Lanes and k past an end become +0; lanes are rounded up to whole calls.
template <class T>
void pack_chunk(const PackSide& side, const Operand<T>& operand, const BlockMap& map, int64_t lane, int64_t lanes, int64_t block, int64_t blocks,
                std::byte* panels);

}  // namespace dz::kernels
