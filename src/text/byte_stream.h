// The bytes of a file, decompressed when its name ends in .gz or .zst. Internal to this room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>

namespace dz::text {

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Up to `capacity` (> 0) bytes; 0 only at the end. DataError for damaged or truncated compression, with path and compressed offset.
  virtual size_t read(char* out, size_t capacity) = 0;
  // Leaves out `count` bytes; DataError when the stream ends within them.
  virtual void skip(int64_t count);
  virtual int64_t consumed() const = 0;  // bytes of the file that were taken so far

  // Files with several gzip members or zstd frames are their texts joined. Memory does not depend on the size of the file.
  static std::unique_ptr<ByteStream> open(const std::filesystem::path& path);
};

}  // namespace dz::text
