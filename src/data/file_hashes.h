// SHA-256 of large files, kept between runs: a file whose path, size, time of change and inode are what they were is not read again.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"

namespace dz::data {

inline constexpr int64_t kHashChunkBytes = int64_t{64} << 20;

struct FileHashes {
  std::string sha256;
  std::vector<std::string> chunks;  // of each kHashChunkBytes, the last one shorter; none for an empty file
  friend bool operator==(const FileHashes&, const FileHashes&) = default;
};

// What tells that a file is still the same one, without reading it.
struct FileStamp {
  int64_t bytes = 0;
  int64_t mtime_ns = 0;
  uint64_t inode = 0;
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};
FileStamp stamp_of(const File& file);

struct HashedFile {
  FileStamp stamp;
  FileHashes hashes;
};

// Reads the whole file once; `look` sees each piece (at most 1 MiB, a multiple of 8 bytes except the last) with its offset.
// DataError when the file is changed while it is read.
HashedFile hash_file(const File& file, const std::function<void(int64_t, std::span<const std::byte>)>& look);

// DIRECTORY/file_hashes.json. A damaged one is ignored, with a note. Without a directory nothing is kept. Not thread safe.
class HashCache {
 public:
  HashCache(const fs::path& directory, std::vector<std::string>& notes);
  std::optional<FileHashes> find(const fs::path& path, const FileStamp& stamp) const;
  // Files that changed within the last two seconds are not kept: another change could leave the same time.
  void put(const fs::path& path, const HashedFile& file);
  void save();  // atomically, when something was put; CreateError, IoError

 private:
  std::string entries_json() const;
  void load(const std::string& text);

  fs::path path_;  // empty: nothing is kept
  std::map<std::string, HashedFile> entries_;
  bool changed_ = false;
};

}  // namespace dz::data
