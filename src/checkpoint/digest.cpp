#include "checkpoint/digest.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/check.h"

namespace dz::checkpoint {
namespace {

// 256 blocks, 4 MiB: enough work for a thread to claim at a time.
constexpr int64_t kPieceBlocks = 256;

constexpr uint32_t kExponent = 0x7f800000u;

int64_t block_count(const TensorView& tensor) { return (tensor.elements() + kDigestBlock - 1) / kDigestBlock; }

std::span<const float> block_of(const TensorView& tensor, int64_t block) {
  const int64_t begin = block * kDigestBlock;
  const int64_t count = std::min(kDigestBlock, tensor.elements() - begin);
  return {static_cast<const float*>(tensor.data) + begin, static_cast<size_t>(count)};
}

struct Piece {
  size_t tensor;
  int64_t begin, end;  // blocks
};

std::vector<Piece> pieces_of(std::span<const TensorView> tensors) {
  std::vector<Piece> pieces;
  for (size_t t = 0; t < tensors.size(); ++t) {
    DZ_CHECK(tensors[t].dtype == DType::kF32, "tensor", tensors[t].name, "dtype", static_cast<int>(tensors[t].dtype));
    const int64_t blocks = block_count(tensors[t]);
    for (int64_t begin = 0; begin < blocks; begin += kPieceBlocks) pieces.push_back({t, begin, std::min(blocks, begin + kPieceBlocks)});
  }
  return pieces;
}

template <class Value>
void append(std::vector<std::byte>& bytes, Value value) {
  const auto* begin = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), begin, begin + sizeof value);
}

void append(std::vector<std::byte>& bytes, const Digest128& digest) {
  append(bytes, digest.low);
  append(bytes, digest.high);
}

uint32_t bits_at(std::span<const float> block, size_t i) { return std::bit_cast<uint32_t>(block[i]); }

}  // namespace

Digest128 block_digest(std::span<const float> block) {
  DZ_CHECK(!block.empty() && static_cast<int64_t>(block.size()) <= kDigestBlock, "elements", block.size());
  bool has_nan = false;
  for (size_t i = 0; i < block.size(); ++i) has_nan |= (bits_at(block, i) & 0x7fffffffu) > kExponent;
  if (!has_nan) return xxh3_128(std::as_bytes(block));
  // Which NaN an instruction returns differs between CPUs, so all count as one.
  std::array<uint32_t, static_cast<size_t>(kDigestBlock)> bits;
  for (size_t i = 0; i < block.size(); ++i) bits[i] = (bits_at(block, i) & 0x7fffffffu) > kExponent ? 0x7fc00000u : bits_at(block, i);
  return xxh3_128(std::as_bytes(std::span(bits.data(), block.size())));
}

Digest128 tensor_digest(std::string_view name, const Shape& shape, std::span<const Digest128> blocks) {
  std::vector<std::byte> bytes;
  bytes.reserve(name.size() + shape.size() * 8 + blocks.size() * 16 + 8);
  append(bytes, static_cast<uint32_t>(name.size()));
  bytes.insert(bytes.end(), reinterpret_cast<const std::byte*>(name.data()), reinterpret_cast<const std::byte*>(name.data() + name.size()));
  append(bytes, static_cast<uint32_t>(shape.size()));
  for (const int64_t size : shape) append(bytes, size);
  for (const Digest128& block : blocks) append(bytes, block);
  return xxh3_128(bytes);
}

void TensorDigester::add(std::span<const float> values) {
  constexpr auto kBlock = static_cast<size_t>(kDigestBlock);
  while (!values.empty()) {
    if (rest_.empty() && values.size() >= kBlock) {
      blocks_.push_back(block_digest(values.first(kBlock)));
      values = values.subspan(kBlock);
      continue;
    }
    const size_t count = std::min(values.size(), kBlock - rest_.size());
    rest_.insert(rest_.end(), values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count));
    values = values.subspan(count);
    if (rest_.size() < kBlock) continue;
    blocks_.push_back(block_digest(rest_));
    rest_.clear();
  }
}

Digest128 TensorDigester::finish(std::string_view name, const Shape& shape) {
  if (!rest_.empty()) blocks_.push_back(block_digest(rest_));
  return tensor_digest(name, shape, blocks_);
}

TensorsDigest digest_tensors(std::span<const TensorView> tensors, ThreadPool& pool) {
  std::vector<std::vector<Digest128>> blocks(tensors.size());
  for (size_t t = 0; t < tensors.size(); ++t) blocks[t].resize(static_cast<size_t>(block_count(tensors[t])));
  const std::vector<Piece> pieces = pieces_of(tensors);
  pool.parallel_for(static_cast<int64_t>(pieces.size()), [&](int64_t i) {
    const Piece& piece = pieces[static_cast<size_t>(i)];
    for (int64_t block = piece.begin; block < piece.end; ++block)
      blocks[piece.tensor][static_cast<size_t>(block)] = block_digest(block_of(tensors[piece.tensor], block));
  });
  TensorsDigest digest;
  for (size_t t = 0; t < tensors.size(); ++t)
    digest.tensors.push_back({tensors[t].name, tensor_digest(tensors[t].name, tensors[t].shape, blocks[t])});
  std::sort(digest.tensors.begin(), digest.tensors.end(), [](const NamedDigest& a, const NamedDigest& b) { return a.name < b.name; });
  digest.total = combined_digest(digest.tensors);
  return digest;
}

Digest128 combined_digest(std::span<const NamedDigest> tensors) {
  std::vector<std::byte> bytes;
  for (size_t t = 0; t < tensors.size(); ++t) {
    DZ_CHECK(t == 0 || tensors[t - 1].name < tensors[t].name, "tensor", tensors[t].name, "after", tensors[t - 1].name);
    append(bytes, tensors[t].digest);
  }
  return xxh3_128(bytes);
}

std::optional<NonFinite> find_non_finite(std::span<const TensorView> tensors, ThreadPool& pool) {
  const std::vector<Piece> pieces = pieces_of(tensors);
  std::vector<int64_t> found(pieces.size(), -1);
  pool.parallel_for(static_cast<int64_t>(pieces.size()), [&](int64_t i) {
    const Piece& piece = pieces[static_cast<size_t>(i)];
    for (int64_t block = piece.begin; block < piece.end && found[static_cast<size_t>(i)] < 0; ++block) {
      const std::span<const float> values = block_of(tensors[piece.tensor], block);
      bool any = false;
      for (size_t e = 0; e < values.size(); ++e) any |= (bits_at(values, e) & kExponent) == kExponent;
      for (size_t e = 0; any && e < values.size(); ++e) {
        if ((bits_at(values, e) & kExponent) != kExponent) continue;
        found[static_cast<size_t>(i)] = block * kDigestBlock + static_cast<int64_t>(e);
        break;
      }
    }
  });
  for (size_t i = 0; i < pieces.size(); ++i)
    if (found[i] >= 0)
      return NonFinite{tensors[pieces[i].tensor].name, found[i], static_cast<const float*>(tensors[pieces[i].tensor].data)[found[i]]};
  return std::nullopt;
}

Digest128 digest_text(std::string_view text) { return xxh3_128(std::as_bytes(std::span(text.data(), text.size()))); }

std::string exp_avg_name(std::string_view name) { return "exp_avg." + std::string(name); }

std::string exp_avg_sq_name(std::string_view name) { return "exp_avg_sq." + std::string(name); }

}  // namespace dz::checkpoint
