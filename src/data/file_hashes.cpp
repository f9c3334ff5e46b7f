#include "data/file_hashes.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"

namespace dz::data {
namespace {

using Json = nlohmann::json;

constexpr int64_t kPieceBytes = int64_t{1} << 20;
constexpr int64_t kSettledNs = 2'000'000'000;
constexpr const char* kFormat = "deltazero-file-hashes-1";

int64_t nanoseconds(const timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return nanoseconds(time);
}

std::string key_of(const fs::path& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  return (error ? path : absolute).lexically_normal().string();
}

}  // namespace

FileStamp stamp_of(const File& file) {
  struct stat info {};
  if (::fstat(file.descriptor(), &info) != 0) throw IoError(file.path().string() + ": fstat failed: " + std::strerror(errno));
  return {.bytes = info.st_size, .mtime_ns = nanoseconds(info.st_mtim), .inode = info.st_ino};
}

HashedFile hash_file(const File& file, const std::function<void(int64_t, std::span<const std::byte>)>& look) {
  const FileStamp before = stamp_of(file);
  const bool one_chunk = before.bytes <= kHashChunkBytes;
  std::vector<std::byte> piece(static_cast<size_t>(std::min(before.bytes, kPieceBytes)));
  FileHashes hashes;
  Sha256 whole;
  for (int64_t first = 0; first < before.bytes; first += kHashChunkBytes) {
    Sha256 chunk;
    const int64_t end = std::min(before.bytes, first + kHashChunkBytes);
    for (int64_t at = first; at < end; at += kPieceBytes) {
      const std::span<std::byte> out = std::span(piece).first(static_cast<size_t>(std::min(kPieceBytes, end - at)));
      file.read_at(at, out);
      look(at, out);
      whole.update(out);
      if (!one_chunk) chunk.update(out);
    }
    if (!one_chunk) hashes.chunks.push_back(chunk.hex());
  }
  hashes.sha256 = whole.hex();
  if (one_chunk && before.bytes > 0) hashes.chunks.push_back(hashes.sha256);
  if (stamp_of(file) != before) throw DataError(file.path().string() + ": changed while it was read; wait until it is complete");
  return {.stamp = before, .hashes = std::move(hashes)};
}

HashCache::HashCache(const fs::path& directory, std::vector<std::string>& notes) {
  if (directory.empty()) return;
  path_ = directory / "file_hashes.json";
  std::error_code ignored;
  if (!fs::exists(path_, ignored)) return;
  try {
    load(read_file(path_));
  } catch (const std::exception& error) {
    entries_.clear();
    notes.push_back(fmt::format("{}: damaged ({}), so the files are read again", path_.string(), error.what()));
  }
}

// Throws anything for a damaged text; the hash over the entries finds what still parses.
void HashCache::load(const std::string& text) {
  const Json json = Json::parse(text);
  if (json.at("format") != kFormat) throw DataError("another format");
  for (const Json& file : json.at("files")) {
    HashedFile entry{.stamp = {.bytes = file.at("bytes"), .mtime_ns = file.at("mtime_ns"), .inode = file.at("inode")},
                     .hashes = {.sha256 = file.at("sha256"), .chunks = file.at("chunks")}};
    entries_[file.at("path")] = std::move(entry);
  }
  if (json.at("sha256") != sha256_hex(entries_json())) throw DataError("its own hash does not fit");
}

std::string HashCache::entries_json() const {
  Json files = Json::array();
  for (const auto& [path, entry] : entries_) {
    files.push_back({{"path", path},
                     {"bytes", entry.stamp.bytes},
                     {"mtime_ns", entry.stamp.mtime_ns},
                     {"inode", entry.stamp.inode},
                     {"sha256", entry.hashes.sha256},
                     {"chunks", entry.hashes.chunks}});
  }
  return files.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<FileHashes> HashCache::find(const fs::path& path, const FileStamp& stamp) const {
  const auto found = entries_.find(key_of(path));
  if (found == entries_.end() || found->second.stamp != stamp) return std::nullopt;
  return found->second.hashes;
}

void HashCache::put(const fs::path& path, const HashedFile& file) {
  if (path_.empty() || now_ns() - file.stamp.mtime_ns < kSettledNs) return;
  entries_[key_of(path)] = file;
  changed_ = true;
}

void HashCache::save() {
  if (path_.empty() || !changed_) return;
  dz::create_directories(path_.parent_path());
  const std::string files = entries_json();
  write_file_atomic(path_, fmt::format("{{\"format\":\"{}\",\"sha256\":\"{}\",\"files\":{}}}\n", kFormat, sha256_hex(files), files));
  changed_ = false;
}

}  // namespace dz::data
