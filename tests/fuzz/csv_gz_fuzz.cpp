// Feeds damaged document metadata to its reader, as it is and gzipped, so that both gzip and rows are reached: it may refuse the bytes, but not
// crash, hang or take memory that they do not justify.
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.h"
#include "data/document_metadata.h"
#include "fuzz/fuzz.h"

namespace {

void read(const std::vector<uint8_t>& bytes) {
  const int memory = ::memfd_create("fuzz", 0);
  if (memory < 0 || ::write(memory, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) std::abort();
  constexpr int64_t kTokens = 1000;
  int64_t end = 0;
  try {
    dz::data::read_document_metadata("/proc/self/fd/" + std::to_string(memory), kTokens, [&](dz::data::DocumentRange range) {
      if (range.start < end || range.end < range.start || range.end > kTokens) std::abort();  // a range that was believed
      end = range.end;
    });
    ++dz::fuzz::accepted;
  } catch (const dz::Error&) {
  }
  ::close(memory);
}

std::vector<uint8_t> gzip(const uint8_t* data, size_t size) {
  z_stream stream{};
  constexpr int kGzip = 16 + MAX_WBITS;
  if (deflateInit2(&stream, 1, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK) std::abort();
  std::vector<uint8_t> out(deflateBound(&stream, size));
  stream.next_in = const_cast<uint8_t*>(data);
  stream.avail_in = static_cast<uInt>(size);
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) std::abort();
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  read({data, data + size});
  read(gzip(data, size));
  return 0;
}
