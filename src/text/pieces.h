// Short pieces as keys of two machine words, and the two tables that encoding asks before it merges.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace dz::text {

static_assert(std::endian::native == std::endian::little, "bytes are taken out of words");

// A piece of 1 to 15 bytes: its bytes, zeros, and the size as the last byte. Equal keys are equal pieces.
struct PieceKey {
  static constexpr size_t kMaxSize = 15;
  uint64_t low = 0;
  uint64_t high = 0;  // 0 only for "no piece"

  friend bool operator==(const PieceKey&, const PieceKey&) = default;
  // Multiplications carry low bits upwards, so tables take the upper bits.
  uint64_t hash() const { return (low ^ high * 0x9E3779B97F4A7C15u) * 0xD6E8FEB86659FD93u; }
};

// `text_end`: behind the last byte that may be read. Away from it the words are loaded whole and cut.
inline PieceKey piece_key(const char* piece, size_t size, const char* text_end) {
  uint64_t low = 0;
  uint64_t high = 0;
  if (text_end - piece >= 16) {
    std::memcpy(&low, piece, 8);
    std::memcpy(&high, piece + 8, 8);
    if (size < 8) {
      low &= (uint64_t{1} << 8 * size) - 1;
      high = 0;
    } else {
      high &= (uint64_t{1} << 8 * (size - 8)) - 1;
    }
  } else {
    std::memcpy(&low, piece, size < 8 ? size : 8);
    if (size > 8) std::memcpy(&high, piece + 8, size - 8);
  }
  return {low, high | uint64_t{size} << 56};
}

// Short pieces that are one token, whose own merges lead to it: open addressing, filled once, then only read.
class WholePieces {
 public:
  void reserve(int64_t pieces);
  void set(std::string_view piece, int32_t id);  // of 1 to 15 bytes
  int32_t find(const PieceKey& key) const {      // -1 when it is none
    for (uint64_t slot = key.hash() >> shift_;; slot = (slot + 1) & mask_) {
      if (slots_[slot].key == key) return slots_[slot].id;
      if (slots_[slot].key.high == 0) return -1;
    }
  }

 private:
  struct Slot {
    PieceKey key;
    int32_t id = -1;
  };
  std::vector<Slot> slots_{2};
  uint64_t mask_ = 1;
  int shift_ = 63;
};

// Short pieces and their up to three ids, as they were met: each in the one slot that its hash names, where a newer one replaces an older.
class PieceCache {
 public:
  static constexpr int kMaxIds = 3;
  struct alignas(32) Slot {
    PieceKey key;
    int32_t ids[kMaxIds];
    int32_t count;
  };
  static_assert(sizeof(Slot) == 32);

  // 512 KiB, so that it stays in the second-level cache.
  PieceCache() : slots_(size_t{1} << kBits) {}
  Slot& slot(const PieceKey& key) { return slots_[key.hash() >> (64 - kBits)]; }

 private:
  static constexpr int kBits = 14;
  std::vector<Slot> slots_;
};

}  // namespace dz::text
