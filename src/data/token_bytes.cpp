#include "data/token_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/error.h"

namespace dz::data {
namespace {

template <class Id>
uint32_t id_at(std::span<const std::byte> bytes, size_t index) {
  Id id;
  std::memcpy(&id, bytes.data() + index * sizeof(Id), sizeof(Id));
  return id;
}

// The place of the first id >= vocab, or the count. The common case is a plain maximum over the piece.
template <class Id>
size_t first_outside(std::span<const std::byte> bytes, int64_t vocab) {
  const size_t count = bytes.size() / sizeof(Id);
  uint32_t largest = 0;
  for (size_t i = 0; i < count; ++i) largest = std::max(largest, id_at<Id>(bytes, i));
  if (int64_t{largest} < vocab) return count;
  size_t i = 0;
  while (int64_t{id_at<Id>(bytes, i)} < vocab) ++i;
  return i;
}

}  // namespace

uint32_t token_at(std::span<const std::byte> bytes, TokenType type, size_t index) {
  return type == TokenType::kUint16 ? id_at<uint16_t>(bytes, index) : id_at<uint32_t>(bytes, index);
}

void check_token_range(std::span<const std::byte> bytes, TokenType type, int64_t vocab_size, const fs::path& path, int64_t first_byte) {
  const auto width = static_cast<size_t>(size_of(type));
  const size_t at = type == TokenType::kUint16 ? first_outside<uint16_t>(bytes, vocab_size) : first_outside<uint32_t>(bytes, vocab_size);
  if (at == bytes.size() / width) return;
  throw DataError(Complaint{.where = fmt::format("{} at byte {}", path.string(), first_byte + static_cast<int64_t>(at * width)),
                            .found = fmt::format("token id {}", token_at(bytes, type, at)),
                            .expected = fmt::format("an id below the vocabulary size {}", vocab_size),
                            .hint = "the shard is corrupt or was made with another tokenizer"});
}

void widen_tokens(std::span<const std::byte> bytes, TokenType type, std::span<int32_t> out) {
  DZ_CHECK(bytes.size() == out.size() * static_cast<size_t>(size_of(type)), "bytes", bytes.size(), "tokens", out.size());
  if (type == TokenType::kUint16) {
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<int32_t>(id_at<uint16_t>(bytes, i));
  } else {
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<int32_t>(id_at<uint32_t>(bytes, i));
  }
}

}  // namespace dz::data
