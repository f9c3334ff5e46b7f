#include "data/document_rows.h"

#include <zlib.h>

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "text/unicode.h"

namespace dz::data {
namespace {

std::string column(std::string_view value) {
  std::string text(value);
  text::replace_invalid_utf8(text);
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  if (text.find_first_of(",\"") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

class Gzip {
 public:
  explicit Gzip(File& out) : out_(out), block_(size_t{1} << 16) {
    constexpr int kGzip = 16 + MAX_WBITS, kMemory = 8;
    DZ_CHECK(deflateInit2(&state_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip, kMemory, Z_DEFAULT_STRATEGY) == Z_OK);
  }
  ~Gzip() { deflateEnd(&state_); }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

  void put(std::span<std::byte> bytes, bool last) {
    state_.next_in = reinterpret_cast<Bytef*>(bytes.data());
    state_.avail_in = static_cast<uInt>(bytes.size());
    do {
      state_.next_out = reinterpret_cast<Bytef*>(block_.data());
      state_.avail_out = static_cast<uInt>(block_.size());
      deflate(&state_, last ? Z_FINISH : Z_NO_FLUSH);
      out_.write(std::span<const std::byte>(block_).first(block_.size() - state_.avail_out));
    } while (state_.avail_out == 0);
  }

 private:
  File& out_;
  std::vector<std::byte> block_;
  z_stream state_{};
};

}  // namespace

std::string document_row(int64_t start, int64_t end, const DocumentOrigin& origin) {
  std::string row = std::to_string(start) + "," + std::to_string(end) + "," + column(origin.id) + "," + column(origin.src) + ",";
  if (origin.loc > 0) row += std::to_string(origin.loc);
  return row + "\n";
}

void gzip_file(const fs::path& from, const fs::path& to) {
  const File in = File::open_read(from);
  File out = File::create(to);
  Gzip gzip(out);
  std::vector<std::byte> piece(size_t{1} << 18);
  const int64_t bytes = in.size(), step = static_cast<int64_t>(piece.size());
  int64_t at = 0;
  do {
    const std::span<std::byte> block = std::span(piece).first(static_cast<size_t>(std::min(step, bytes - at)));
    in.read_at(at, block);
    at += static_cast<int64_t>(block.size());
    gzip.put(block, at == bytes);
  } while (at < bytes);
  out.sync();
  out.close();
}

}  // namespace dz::data
