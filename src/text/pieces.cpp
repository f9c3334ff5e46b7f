#include "text/pieces.h"

#include <algorithm>

#include "base/check.h"

namespace dz::text {

void WholePieces::reserve(int64_t pieces) {
  const uint64_t size = std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(pieces, 1)) * 2);
  slots_.assign(size, {});
  mask_ = size - 1;
  shift_ = 64 - std::countr_zero(size);
}

void WholePieces::set(std::string_view piece, int32_t id) {
  DZ_CHECK(!piece.empty() && piece.size() <= PieceKey::kMaxSize);
  const PieceKey key = piece_key(piece.data(), piece.size(), piece.data() + piece.size());
  uint64_t slot = key.hash() >> shift_;
  while (slots_[slot].key.high != 0 && slots_[slot].key != key) slot = (slot + 1) & mask_;
  slots_[slot] = {key, id};
}

}  // namespace dz::text
