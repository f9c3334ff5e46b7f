// Tokens as they lie in files: little-endian unsigned integers of two or four bytes. Internal to this room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/file.h"
#include "data/token_shards.h"

namespace dz::data {

// The token at `index` of the bytes.
uint32_t token_at(std::span<const std::byte> bytes, TokenType type, size_t index);

// DataError naming the file, the byte (the first of `bytes` is at `first_byte` of the file) and the id when one is not below vocab_size.
void check_token_range(std::span<const std::byte> bytes, TokenType type, int64_t vocab_size, const fs::path& path, int64_t first_byte);

// Ids that are in range; bytes.size() == out.size() * size_of(type).
void widen_tokens(std::span<const std::byte> bytes, TokenType type, std::span<int32_t> out);

}  // namespace dz::data
