// Files, with the care that checkpoints and token shards need: exact reads, atomic writes, errors that name path and cause.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace dz {

namespace fs = std::filesystem;

// An open file descriptor. Not copyable; closes on destruction, where errors can no longer be told: writers call close().
class File {
 public:
  File() = default;
  static File open_read(const fs::path& path);  // InputError when missing, unreadable or not a regular file
  static File create(const fs::path& path);     // truncates; CreateError
  static File append(const fs::path& path);     // creates when missing; CreateError
  // In the directory for temporary files (TMPDIR, else /tmp), to write and read; it has no name any more, so nothing is left behind even
  // by a kill. CreateError.
  static File temporary();
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  int64_t size() const;
  // Fills `out` from byte `offset`. DataError when the file ends earlier, IoError when the read fails; both name path and offset.
  void read_at(int64_t offset, std::span<std::byte> out) const;
  void write(std::span<const std::byte> bytes);  // at the current end; IoError with the cause (disk full, quota)
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  void write_at(int64_t offset, std::span<const std::byte> bytes);  // not for append(); IoError
  void truncate(int64_t size);
  void sync();   // fsync
  void close();  // reports what the destructor could not
  int descriptor() const { return fd_; }
  const fs::path& path() const { return path_; }

 private:
  File(int fd, fs::path path) : fd_(fd), path_(std::move(path)) {}
  int fd_ = -1;
  fs::path path_;
};

std::string read_file(const fs::path& path);  // whole file; InputError, IoError
// Writes to a temporary name beside `path`, syncs, renames over it and syncs the directory: readers see the old bytes or the new.
void write_file_atomic(const fs::path& path, std::string_view bytes);
void sync_directory(const fs::path& directory);
void create_directories(const fs::path& directory);  // CreateError
// Renames and syncs the parent directory of the target.
void rename_durably(const fs::path& from, const fs::path& to);

// A read-only map of a whole file. The bytes stay valid as long as the object lives and nobody shrinks the file.
class MappedFile {
 public:
  explicit MappedFile(const fs::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();
  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace dz
