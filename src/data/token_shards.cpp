#include "data/token_shards.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/thread_pool.h"
#include "data/token_bytes.h"

namespace dz::data {
namespace {

// A multiple of both widths; large enough that reading is not bound by system calls.
constexpr int64_t kPieceBytes = int64_t{1} << 20;

}  // namespace

TokenShards::TokenShards(const fs::path& directory) : directory_(directory) {
  const fs::path path = directory / "manifest.json";
  if (!fs::exists(path)) {
    throw InputError(Complaint{.where = directory.string(),
                               .found = fs::is_directory(directory) ? "no manifest.json" : "no such directory",
                               .expected = "a directory of token shards",
                               .hint = "make it with tokenize; without a manifest it was interrupted: run it again"});
  }
  manifest_ = parse_token_manifest(read_file(path), path.string());
  for (size_t i = 0; i < manifest_.sources.size(); ++i) {
    for (const Split split : kSplits) {
      int64_t first = 0;
      auto& parts = streams_[{static_cast<int64_t>(i), split}];
      for (const ShardFile& entry : manifest_.sources[i].stream(split).files) {
        Part part{.file = File::open_read(directory / entry.path), .first = first, .tokens = entry.tokens, .sha256 = entry.sha256};
        const int64_t bytes = part.file.size(), expected = entry.tokens * size_of(manifest_.type);
        if (bytes != expected) {
          throw DataError(
              Complaint{.where = part.file.path().string(),
                        .found = fmt::format("{} bytes", bytes),
                        .expected = fmt::format("{}", expected),
                        .hint = bytes < expected ? "the shard is truncated: run tokenize again" : "the shard does not belong to this manifest"});
        }
        first += entry.tokens;
        parts.push_back(std::move(part));
      }
    }
  }
}

void TokenShards::check_part(const Part& part) const {
  const int64_t bytes = part.tokens * size_of(manifest_.type);
  std::vector<std::byte> piece(static_cast<size_t>(std::min(bytes, kPieceBytes)));
  Sha256 hash;
  for (int64_t at = 0; at < bytes; at += kPieceBytes) {
    const std::span<std::byte> out = std::span(piece).first(static_cast<size_t>(std::min(kPieceBytes, bytes - at)));
    part.file.read_at(at, out);
    hash.update(out);
    check_token_range(out, manifest_.type, manifest_.vocab_size, part.file.path(), at);
  }
  const std::string found = hash.hex();
  if (found != part.sha256) {
    throw DataError(Complaint{.where = part.file.path().string(),
                              .found = "sha256 " + found,
                              .expected = part.sha256 + " as in manifest.json",
                              .hint = "the shard was changed: run tokenize again"});
  }
}

void TokenShards::verify(ThreadPool& pool) const {
  std::vector<const Part*> parts;
  for (const auto& [key, stream] : streams_) {
    for (const Part& part : stream) parts.push_back(&part);
  }
  // The first damaged file in manifest order is reported, whichever thread finds one first.
  std::vector<std::exception_ptr> errors(parts.size());
  pool.parallel_for(static_cast<int64_t>(parts.size()), [&](int64_t i) {
    try {
      check_part(*parts[static_cast<size_t>(i)]);
    } catch (...) {
      errors[static_cast<size_t>(i)] = std::current_exception();
    }
  });
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

void TokenShards::read(int64_t source, Split split, int64_t first, std::span<int32_t> out) const {
  const auto found = streams_.find({source, split});
  DZ_CHECK(found != streams_.end(), "source", source);
  const std::vector<Part>& parts = found->second;
  const int64_t total = parts.empty() ? 0 : parts.back().first + parts.back().tokens;
  const auto count = static_cast<int64_t>(out.size());
  DZ_CHECK(first >= 0 && count <= total && first <= total - count, "first", first, "count", count, "tokens", total);
  if (out.empty()) return;
  const auto width = static_cast<size_t>(size_of(manifest_.type));
  std::vector<std::byte> bytes(out.size() * width);
  auto part = std::upper_bound(parts.begin(), parts.end(), first, [](int64_t token, const Part& entry) { return token < entry.first; }) - 1;
  size_t done = 0;
  for (; done < out.size(); ++part) {
    const int64_t offset = first + static_cast<int64_t>(done) - part->first;
    const auto take = static_cast<size_t>(std::min(part->tokens - offset, count - static_cast<int64_t>(done)));
    const std::span<std::byte> piece = std::span(bytes).subspan(done * width, take * width);
    part->file.read_at(offset * size_of(manifest_.type), piece);
    check_token_range(piece, manifest_.type, manifest_.vocab_size, part->file.path(), offset * size_of(manifest_.type));
    done += take;
  }
  widen_tokens(bytes, manifest_.type, out);
}

}  // namespace dz::data
