#include "data/document_metadata.h"

#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <charconv>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/hash.h"

namespace dz::data {
namespace {

constexpr size_t kLongestRow = size_t{1} << 20;

class GzipFile {
 public:
  explicit GzipFile(const fs::path& path) : path_(path) {
    const File file = File::open_read(path);
    const int descriptor = ::dup(file.descriptor());
    file_ = descriptor < 0 ? nullptr : gzdopen(descriptor, "rb");
    if (!file_) {
      if (descriptor >= 0) ::close(descriptor);
      throw IoError(path.string() + ": cannot be read");
    }
    gzbuffer(file_, 1 << 17);
    if (gzdirect(file_)) fail("found no gzip header; document metadata is gzip text");
  }
  ~GzipFile() {
    if (file_) gzclose_r(file_);
  }
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  // Up to out.size() bytes; 0 at the end.
  size_t read(std::span<char> out) {
    const int count = gzread(file_, out.data(), static_cast<unsigned>(out.size()));
    int error = Z_OK;
    gzerror(file_, &error);
    if (count < 0 || error == Z_BUF_ERROR || error == Z_DATA_ERROR)
      fail(error == Z_BUF_ERROR ? "cut off: the file ends before its gzip data" : "damaged: its gzip data cannot be unpacked");
    return static_cast<size_t>(count);
  }

 private:
  [[noreturn]] void fail(const std::string& what) {
    if (file_) gzclose_r(file_);
    file_ = nullptr;
    throw DataError(path_.string() + ": " + what);
  }

  fs::path path_;
  gzFile file_ = nullptr;
};

class Rows {
 public:
  Rows(const fs::path& path, int64_t tokens) : path_(path), tokens_(tokens) {}

  DocumentRange parse(std::string_view row) {
    ++line_;
    if (!row.empty() && row.back() == '\r') row.remove_suffix(1);
    const DocumentRange range{.start = number(row), .end = number(row)};
    if (range.start < last_end_) fail(fmt::format("start {}", range.start), fmt::format("at least {}, the end of the document before", last_end_));
    if (range.end < range.start) fail(fmt::format("end {}", range.end), fmt::format("at least the start {}", range.start));
    if (range.end > tokens_) fail(fmt::format("end {}", range.end), fmt::format("at most {}, the tokens of the file", tokens_));
    last_end_ = range.end;
    return range;
  }

  [[noreturn]] void fail_long() {
    ++line_;
    fail("a row of more than " + std::to_string(kLongestRow) + " bytes", "start,end[,...]");
  }

 private:
  // Takes a column of digits and the comma behind it off the row.
  int64_t number(std::string_view& row) {
    const size_t comma = std::min(row.find(','), row.size());
    const std::string_view digits = row.substr(0, comma);
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (digits.empty() || error != std::errc() || end != digits.data() + digits.size() || value > uint64_t{INT64_MAX})
      fail(fmt::format("\"{}\"", digits.substr(0, 40)), "start,end[,...] in whole numbers");
    row.remove_prefix(std::min(comma + 1, row.size()));
    return static_cast<int64_t>(value);
  }

  [[noreturn]] void fail(const std::string& found, const std::string& expected) const {
    throw DataError(Complaint{.where = fmt::format("{}:{}", path_.string(), line_),
                              .found = found,
                              .expected = expected,
                              .hint = "the metadata belongs to another token file or is damaged"});
  }

  const fs::path& path_;
  int64_t tokens_, line_ = 0, last_end_ = 0;
};

}  // namespace

fs::path document_metadata_path(const fs::path& token_file) {
  std::string name = token_file.filename().string();
  const size_t suffix = name.rfind(".npy");
  if (suffix == std::string::npos) {
    throw DataError(Complaint{.where = token_file.string(),
                              .found = "a name without .npy",
                              .expected = "X.npy, whose document metadata is X.csv.gz beside it",
                              .hint = "find documents by their EOS (documents: eos)"});
  }
  return token_file.parent_path() / name.replace(suffix, 4, ".csv.gz");
}

void read_document_metadata(const fs::path& path, int64_t tokens, const std::function<void(DocumentRange)>& visit) {
  GzipFile file(path);
  Rows rows(path, tokens);
  std::vector<char> block(1 << 16);
  std::string carried;  // the start of a row that the block before ended in
  while (const size_t count = file.read(block)) {
    std::string_view rest(block.data(), count);
    for (size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
      carried.append(rest.substr(0, end));
      if (carried.size() > kLongestRow) rows.fail_long();
      visit(rows.parse(carried));
      carried.clear();
      rest.remove_prefix(end + 1);
    }
    carried.append(rest);
    if (carried.size() > kLongestRow) rows.fail_long();
  }
  if (!carried.empty()) visit(rows.parse(carried));
}

std::string document_metadata_digest(const fs::path& path) {
  const MappedFile file(path);
  Sha256 hash;
  hash.update(file.bytes());
  return hash.hex();
}

}  // namespace dz::data
