// A file of tokens as other projects write it: headerless little-endian unsigned integers whatever its name says, or a true .npy array.
// The file itself does not say how wide its tokens are, so its head is looked at before it is believed (docs/data.md, "Token files of others").
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/token_shards.h"

namespace dz::data {

// The header of a .npy file, versions 1 to 3 (numpy/lib/format.py).
struct NpyHeader {
  std::string dtype;  // "uint32" for "<u4" and "=u4", "uint8" for "|u1"; kept as it is when it is no little-endian integer (">u4")
  bool fortran_order = false;
  std::vector<int64_t> shape;
  int64_t data_offset = 0;  // bytes
};

inline constexpr size_t kNpyMostHeaderBytes = size_t{1} << 20;

bool has_npy_magic(std::span<const std::byte> head);
// The bytes that parse_npy_header needs, from the first 12 of the file. DataError: unknown version, longer than kNpyMostHeaderBytes.
size_t npy_header_bytes(std::span<const std::byte> head, const std::string& where);
// DataError naming `where`: cut off, a version that is not 1, 2 or 3, anything but a dict with exactly descr, fortran_order and shape.
NpyHeader parse_npy_header(std::span<const std::byte> head, const std::string& where);

// Where the tokens of a file lie.
struct TokenLayout {
  int64_t bytes = 0;  // of the file
  int64_t data_offset = 0;
  int64_t tokens = 0;
  int64_t left_over = 0;  // bytes at the end that make no whole token
  bool npy = false;
};

// Looks at size and head. A true .npy of the right type, one dimension and the right size is read past its header; any other is a
// DataError: its header would be taken for tokens.
TokenLayout token_layout(const File& file, TokenType type);

// Why `bytes`, a sample of tokens said to be of `type`, look like tokens of the other width; nothing when they do not. At least 8 values are
// needed, 64 to be sure: below that only the plainest pattern counts. Two checks (vocab_size: of the declared vocabulary):
// - uint32 read as uint16: every second value is below 4, as the high halves of ids below 262,144 are, while the others are not;
// - uint16 read as uint32: every value is out of range, while both its halves are in range.
std::optional<std::string> other_width(std::span<const std::byte> bytes, TokenType type, int64_t vocab_size);

// DataError at the first byte that is neither 0 nor 1.
void check_mask_bytes(std::span<const std::byte> bytes, const fs::path& path, int64_t first_byte);

}  // namespace dz::data
