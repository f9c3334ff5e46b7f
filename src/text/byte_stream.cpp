#include "text/byte_stream.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/file.h"

namespace dz::text {
namespace {

[[noreturn]] void fail_skip(const std::string& where, int64_t count) {
  throw DataError(Complaint{.where = where, .found = "the end of the text", .expected = std::to_string(count) + " bytes more", .hint = ""});
}

class PlainStream : public ByteStream {
 public:
  explicit PlainStream(const fs::path& path) : file_(File::open_read(path)), size_(file_.size()) {}

  size_t read(char* out, size_t capacity) override {
    const size_t count = std::min(capacity, static_cast<size_t>(size_ - offset_));
    if (count == 0) return 0;
    file_.read_at(offset_, std::as_writable_bytes(std::span(out, count)));
    offset_ += static_cast<int64_t>(count);
    return count;
  }

  void skip(int64_t count) override {
    if (count > size_ - offset_) fail_skip(path(), count);
    offset_ += count;
  }
  int64_t consumed() const override { return offset_; }
  std::string path() const { return file_.path().string(); }

 private:
  File file_;
  int64_t size_;
  int64_t offset_ = 0;
};

// Compressed bytes in blocks, for the two decoders.
class Compressed {
 public:
  explicit Compressed(const fs::path& path) : stream_(path), buffer_(1 << 16) {}

  size_t fill() { return stream_.read(buffer_.data(), buffer_.size()); }
  char* data() { return buffer_.data(); }
  int64_t consumed() const { return stream_.consumed(); }
  [[noreturn]] void fail(const std::string& found, const std::string& expected) const {
    throw DataError(Complaint{.where = stream_.path() + " before compressed byte " + std::to_string(stream_.consumed()),
                              .found = found,
                              .expected = expected,
                              .hint = "the file is damaged or was cut off"});
  }

 private:
  PlainStream stream_;
  std::vector<char> buffer_;
};

class GzipStream : public ByteStream {
 public:
  explicit GzipStream(const fs::path& path) : input_(path) {
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    DZ_CHECK(inflateInit2(&state_, kGzipOnly) == Z_OK);
  }
  ~GzipStream() override { inflateEnd(&state_); }

  size_t read(char* out, size_t capacity) override {
    capacity = std::min(capacity, size_t{1} << 30);
    state_.next_out = reinterpret_cast<Bytef*>(out);
    state_.avail_out = static_cast<uInt>(capacity);
    while (state_.avail_out == capacity) {
      // Text that did not fit into the last caller's buffer may wait inside the decoder after all input was taken.
      if (state_.avail_in == 0 && !pending_ && !refill()) return 0;
      if (at_member_end_) {
        inflateReset(&state_);
        at_member_end_ = false;
      }
      const int code = inflate(&state_, Z_NO_FLUSH);
      if (code == Z_STREAM_END) {
        at_member_end_ = true;
      } else if (code != Z_OK && code != Z_BUF_ERROR) {
        input_.fail(state_.msg ? state_.msg : "error " + std::to_string(code), "gzip data");
      }
      pending_ = state_.avail_out == 0 && !at_member_end_;
    }
    return capacity - state_.avail_out;
  }
  int64_t consumed() const override { return input_.consumed(); }

 private:
  // False at a proper end: behind a member, with nothing following.
  bool refill() {
    const size_t count = input_.fill();
    if (count == 0) {
      if (!at_member_end_) input_.fail("the end of the file", "the end of the gzip data first");
      return false;
    }
    state_.next_in = reinterpret_cast<Bytef*>(input_.data());
    state_.avail_in = static_cast<uInt>(count);
    return true;
  }

  Compressed input_;
  z_stream state_{};
  bool at_member_end_ = false;
  bool pending_ = false;
};

class ZstdStream : public ByteStream {
 public:
  explicit ZstdStream(const fs::path& path) : input_(path), state_(ZSTD_createDStream()) { DZ_CHECK(state_ != nullptr); }
  ~ZstdStream() override { ZSTD_freeDStream(state_); }

  size_t read(char* out, size_t capacity) override {
    ZSTD_outBuffer output{out, capacity, 0};
    while (output.pos == 0) {
      if (buffer_.pos == buffer_.size && !pending_) {
        buffer_ = {input_.data(), input_.fill(), 0};
        if (buffer_.size == 0) {
          if (!at_frame_end_) input_.fail("the end of the file", "the end of the zstd frame first");
          return 0;
        }
      }
      const size_t code = ZSTD_decompressStream(state_, &output, &buffer_);
      if (ZSTD_isError(code)) input_.fail(ZSTD_getErrorName(code), "zstd data");
      at_frame_end_ = code == 0;
      pending_ = output.pos == output.size && !at_frame_end_;
    }
    return output.pos;
  }
  int64_t consumed() const override { return input_.consumed(); }

 private:
  Compressed input_;
  ZSTD_DStream* state_;
  ZSTD_inBuffer buffer_{nullptr, 0, 0};
  bool at_frame_end_ = false;
  bool pending_ = false;
};

}  // namespace

void ByteStream::skip(int64_t count) {
  std::vector<char> block(static_cast<size_t>(std::min<int64_t>(count, int64_t{1} << 20)));
  while (count > 0) {
    const size_t got = read(block.data(), static_cast<size_t>(std::min(count, static_cast<int64_t>(block.size()))));
    if (got == 0) fail_skip("compressed text", count);
    count -= static_cast<int64_t>(got);
  }
}

std::unique_ptr<ByteStream> ByteStream::open(const fs::path& path) {
  const std::string ending = path.extension().string();
  if (ending == ".gz") return std::make_unique<GzipStream>(path);
  if (ending == ".zst") return std::make_unique<ZstdStream>(path);
  return std::make_unique<PlainStream>(path);
}

}  // namespace dz::text
