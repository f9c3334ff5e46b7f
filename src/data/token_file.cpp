#include "data/token_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
#include "data/npy_dict.h"
#include "data/token_bytes.h"

namespace dz::data {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr int64_t kMostTokens = int64_t{1} << 60;

[[noreturn]] void refuse_header(const fs::path& path, const std::string& found, const std::string& expected) {
  throw DataError(Complaint{.where = path.string(),
                            .found = "a .npy header with " + found,
                            .expected = expected,
                            .hint = "read as headerless, the header would be taken for tokens; convert the file"});
}

int64_t count_of(const NpyHeader& header, const fs::path& path) {
  if (header.shape.size() != 1) refuse_header(path, fmt::format("{} dimensions", header.shape.size()), "one dimension");
  if (header.shape[0] > kMostTokens) refuse_header(path, fmt::format("{} tokens", header.shape[0]), "a smaller number");
  return header.shape[0];
}

TokenLayout npy_layout(const File& file, TokenType type, int64_t bytes) {
  std::vector<std::byte> head(static_cast<size_t>(std::min<int64_t>(bytes, 12)));
  file.read_at(0, head);
  const size_t needed = npy_header_bytes(head, file.path().string());
  head.resize(std::min(needed, static_cast<size_t>(bytes)));
  file.read_at(0, head);
  const NpyHeader header = parse_npy_header(head, file.path().string());
  if (header.dtype != name_of(type)) refuse_header(file.path(), "dtype " + header.dtype, fmt::format("dtype {}, little-endian", name_of(type)));
  const int64_t tokens = count_of(header, file.path());
  if (header.data_offset % size_of(type) != 0)
    refuse_header(file.path(), fmt::format("{} bytes", header.data_offset), "a multiple of the token's width, as NumPy writes it");
  const int64_t expected = header.data_offset + tokens * size_of(type);
  if (bytes != expected) {
    throw DataError(Complaint{.where = file.path().string(),
                              .found = fmt::format("{} bytes", bytes),
                              .expected = fmt::format("{} for the {} tokens of its .npy header", expected, tokens),
                              .hint = bytes < expected ? "the file is truncated" : ""});
  }
  return {.bytes = bytes, .data_offset = header.data_offset, .tokens = tokens, .left_over = 0, .npy = true};
}

// Enough values to judge; few ones must fit the pattern without any exception and in a narrower range.
constexpr size_t kFewPairs = 4, kSurePairs = 32;

bool alternates(std::span<const std::byte> bytes) {
  const size_t pairs = bytes.size() / 4;
  if (pairs < kFewPairs) return false;
  const uint32_t limit = pairs < kSurePairs ? 2 : 4;  // high halves of ids below 131,072 or 262,144
  size_t larger = 0;
  for (size_t i = 0; i < pairs; ++i) {
    if (token_at(bytes, TokenType::kUint16, 2 * i + 1) >= limit) return false;
    if (token_at(bytes, TokenType::kUint16, 2 * i) >= limit) ++larger;
  }
  return 2 * larger >= pairs;
}

bool every_half_is_an_id(std::span<const std::byte> bytes, int64_t vocab_size) {
  const size_t count = bytes.size() / 4;
  if (count < kFewPairs) return false;
  for (size_t i = 0; i < count; ++i) {
    if (int64_t{token_at(bytes, TokenType::kUint32, i)} < vocab_size) return false;
    for (const size_t half : {2 * i, 2 * i + 1}) {
      if (int64_t{token_at(bytes, TokenType::kUint16, half)} >= vocab_size) return false;
    }
  }
  return true;
}

}  // namespace

bool has_npy_magic(std::span<const std::byte> head) {
  return head.size() >= kMagic.size() && std::memcmp(head.data(), kMagic.data(), kMagic.size()) == 0;
}

size_t npy_header_bytes(std::span<const std::byte> head, const std::string& where) {
  const auto fail = [&](const std::string& found, const std::string& expected) {
    throw DataError(Complaint{.where = where, .found = found, .expected = expected, .hint = ""});
  };
  const auto byte = [&](size_t at) { return static_cast<size_t>(head[at]); };
  if (!has_npy_magic(head)) fail("no .npy magic", "a .npy header");
  if (head.size() < 8) fail(fmt::format("a .npy header of {} bytes", head.size()), "a whole one");
  const size_t version = byte(6);
  if (version < 1 || version > 3) fail(fmt::format(".npy version {}.{}", version, byte(7)), "version 1, 2 or 3");
  const size_t fixed = version == 1 ? 10 : 12;
  if (head.size() < fixed) fail(fmt::format("a .npy header of {} bytes", head.size()), "a whole one");
  const size_t length = version == 1 ? byte(8) | byte(9) << 8 : byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
  if (length > kNpyMostHeaderBytes) fail(fmt::format("a .npy header of {} bytes", length), fmt::format("at most {}", kNpyMostHeaderBytes));
  return fixed + length;
}

NpyHeader parse_npy_header(std::span<const std::byte> head, const std::string& where) {
  const size_t bytes = npy_header_bytes(head, where), fixed = static_cast<size_t>(head[6]) == 1 ? 10 : 12;
  if (head.size() < bytes) {
    throw DataError(Complaint{.where = where,
                              .found = fmt::format("{} bytes of a .npy header", head.size()),
                              .expected = std::to_string(bytes),
                              .hint = "the file is truncated"});
  }
  NpyHeader header = parse_npy_dict({reinterpret_cast<const char*>(head.data()) + fixed, bytes - fixed}, where);
  header.data_offset = static_cast<int64_t>(bytes);
  return header;
}

TokenLayout token_layout(const File& file, TokenType type) {
  const int64_t bytes = file.size();
  std::array<std::byte, kMagic.size()> head{};
  if (bytes >= static_cast<int64_t>(head.size())) {
    file.read_at(0, head);
    if (has_npy_magic(head)) return npy_layout(file, type, bytes);
  }
  const int64_t width = size_of(type);
  return {.bytes = bytes, .data_offset = 0, .tokens = bytes / width, .left_over = bytes % width, .npy = false};
}

std::optional<std::string> other_width(std::span<const std::byte> bytes, TokenType type, int64_t vocab_size) {
  if (type == TokenType::kUint16 && alternates(bytes)) return "uint32 tokens: every second value is tiny, as the high half of an id is";
  if (type == TokenType::kUint32 && every_half_is_an_id(bytes, vocab_size)) return "uint16 tokens: no value is an id, while each half of them is";
  return std::nullopt;
}

void check_mask_bytes(std::span<const std::byte> bytes, const fs::path& path, int64_t first_byte) {
  const auto bad = std::find_if(bytes.begin(), bytes.end(), [](std::byte byte) { return byte > std::byte{1}; });
  if (bad == bytes.end()) return;
  throw DataError(Complaint{.where = fmt::format("{} at byte {}", path.string(), first_byte + (bad - bytes.begin())),
                            .found = fmt::format("byte {}", static_cast<int>(*bad)),
                            .expected = "0 or 1 for each token",
                            .hint = "this is no label mask"});
}

}  // namespace dz::data
