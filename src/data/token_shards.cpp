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

// SHA-256 of bytes [begin, end); each piece is shown to `look` first.
template <class Look>
std::string hash_range(const File& file, int64_t begin, int64_t end, Look&& look) {
  std::vector<std::byte> block(static_cast<size_t>(std::min(end - begin, kPieceBytes)));
  Sha256 hash;
  for (int64_t at = begin; at < end; at += kPieceBytes) {
    const std::span<std::byte> piece = std::span(block).first(static_cast<size_t>(std::min(kPieceBytes, end - at)));
    file.read_at(at, piece);
    look(at, piece);
    hash.update(piece);
  }
  return hash.hex();
}

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
        Part part{.file = File::open_read(directory / entry.path), .first = first, .tokens = entry.tokens, .entry = entry};
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
  const std::string found = hash_range(part.file, 0, bytes, [&](int64_t at, std::span<const std::byte> piece) {
    check_token_range(piece, manifest_.type, manifest_.vocab_size, part.file.path(), at);
  });
  if (found != part.entry.sha256) fail_damaged(part, found);
  const fs::path documents = directory_ / part.entry.documents_path;
  if (part.entry.documents_path.empty() || !fs::exists(documents)) return;
  const File rows = File::open_read(documents);
  const std::string rows_found = hash_range(rows, 0, rows.size(), [](int64_t, std::span<const std::byte>) {});
  if (rows_found == part.entry.documents_sha256) return;
  throw DataError(Complaint{.where = documents.string(),
                            .found = "sha256 " + rows_found,
                            .expected = part.entry.documents_sha256 + " as in manifest.json",
                            .hint = "the list of documents was changed: run tokenize again"});
}

// Names the first chunk that is wrong, where the manifest lists chunks.
void TokenShards::fail_damaged(const Part& part, const std::string& found) const {
  const int64_t bytes = part.tokens * size_of(manifest_.type), step = manifest_.chunk_bytes;
  for (size_t i = 0; i < part.entry.chunks.size(); ++i) {
    const int64_t begin = static_cast<int64_t>(i) * step, end = std::min(bytes, begin + step);
    const std::string chunk = hash_range(part.file, begin, end, [](int64_t, std::span<const std::byte>) {});
    if (chunk == part.entry.chunks[i]) continue;
    throw DataError(Complaint{
        .where = fmt::format("{}, bytes {} to {} (chunk {} of {})", part.file.path().string(), begin, end - 1, i + 1, part.entry.chunks.size()),
        .found = "sha256 " + chunk,
        .expected = part.entry.chunks[i] + " as in manifest.json",
        .hint = "these bytes were changed: restore them, or run tokenize again"});
  }
  throw DataError(Complaint{.where = part.file.path().string(),
                            .found = "sha256 " + found,
                            .expected = part.entry.sha256 + " as in manifest.json",
                            .hint = "the shard was changed: run tokenize again"});
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
