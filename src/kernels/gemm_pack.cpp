#include "kernels/gemm_pack.h"

#include <algorithm>

#include "base/dtype.h"

namespace dz::kernels {
namespace {

// A block that meets an end, or whose operand has no unit stride: copied with +0 around it, then packed as a whole one.
template <class T>
void pack_edge(const PackSide& side, const Operand<T>& operand, int64_t lane, int64_t k_begin, int64_t k_end, std::byte* panel,
               int64_t panel_stride) {
  T copy[kMaxPackLanes * kGemmBlock] = {};
  const int64_t lanes = std::min(side.call_lanes, operand.lanes - lane);
  const int64_t depth = k_end - k_begin;
  const T* source = operand.data + lane * operand.lane_stride + k_begin * operand.k_stride;
  if (operand.k_stride == 1) {
    for (int64_t i = 0; i < lanes; ++i) std::copy_n(source + i * operand.lane_stride, depth, copy + i * kGemmBlock);
  } else if (operand.lane_stride == 1) {
    for (int64_t k = 0; k < depth; ++k) std::copy_n(source + k * operand.k_stride, lanes, copy + k * side.call_lanes);
    side.from_lanes(copy, side.call_lanes, panel, panel_stride);
    return;
  } else {
    for (int64_t i = 0; i < lanes; ++i) {
      for (int64_t k = 0; k < depth; ++k) copy[i * kGemmBlock + k] = source[i * operand.lane_stride + k * operand.k_stride];
    }
  }
  side.from_k(copy, kGemmBlock, panel, panel_stride);
}

}  // namespace

PackSide a_side(const GemmForm& form) {
  return {
      .panel_lanes = form.rows, .call_lanes = form.pack_rows, .block_bytes = form.a_block, .from_k = form.pack_a_k, .from_lanes = form.pack_a_lanes};
}

PackSide b_side(const GemmForm& form) {
  return {.panel_lanes = form.cols, .call_lanes = form.cols, .block_bytes = form.b_block, .from_k = form.pack_b_k, .from_lanes = form.pack_b_lanes};
}

template <class T>
void pack_chunk(const PackSide& side, const Operand<T>& operand, const BlockMap& map, int64_t lane, int64_t lanes, int64_t block, int64_t blocks,
                std::byte* panels) {
  const int64_t panel_stride = blocks * side.block_bytes;
  const int64_t call_stride = side.call_lanes / side.panel_lanes * panel_stride;
  const auto pack_block = [&](int64_t i, int64_t first) {
    const int64_t k_begin = map.begin(block + i);
    const int64_t k_end = map.end(block + i);
    std::byte* panel = panels + first / side.call_lanes * call_stride + i * side.block_bytes;
    const bool whole = k_end - k_begin == kGemmBlock && lane + first + side.call_lanes <= operand.lanes;
    const T* source = operand.data + (lane + first) * operand.lane_stride + k_begin * operand.k_stride;
    if (whole && operand.k_stride == 1) {
      side.from_k(source, operand.lane_stride, panel, panel_stride);
    } else if (whole && operand.lane_stride == 1) {
      side.from_lanes(source, operand.k_stride, panel, panel_stride);
    } else {
      pack_edge(side, operand, lane + first, k_begin, k_end, panel, panel_stride);
    }
  };
  // Along memory: each cache line is used up before the next row, and rows are read in the direction that the prefetcher sees.
  if (operand.k_stride == 1) {
    for (int64_t first = 0; first < lanes; first += side.call_lanes) {
      for (int64_t i = 0; i < blocks; ++i) pack_block(i, first);
    }
  } else {
    for (int64_t i = 0; i < blocks; ++i) {
      for (int64_t first = 0; first < lanes; first += side.call_lanes) pack_block(i, first);
    }
  }
}

template void pack_chunk(const PackSide&, const Operand<bf16>&, const BlockMap&, int64_t, int64_t, int64_t, int64_t, std::byte*);
template void pack_chunk(const PackSide&, const Operand<float>&, const BlockMap&, int64_t, int64_t, int64_t, int64_t, std::byte*);

}  // namespace dz::kernels
