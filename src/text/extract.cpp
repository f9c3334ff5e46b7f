#include "text/extract.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "text/byte_stream.h"
#include "text/html.h"
#include "text/json_line.h"
#include "text/unicode.h"

namespace dz::text {
namespace fs = std::filesystem;
namespace {

enum class Format { kText, kHtml, kJsonLines };

constexpr std::pair<std::string_view, Format> kEndings[] = {
    {".txt", Format::kText},  {".text", Format::kText}, {".md", Format::kText},    {".rst", Format::kText},        {".pod", Format::kText},
    {".html", Format::kHtml}, {".htm", Format::kHtml},  {".xhtml", Format::kHtml}, {".jsonl", Format::kJsonLines}, {".ndjson", Format::kJsonLines},
};

std::optional<Format> format_of(fs::path path) {
  if (path.extension() == ".gz" || path.extension() == ".zst") path.replace_extension();
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  for (const auto& [known, format] : kEndings)
    if (ending == known) return format;
  return std::nullopt;
}

// Blanks of ASCII are enough to call a document empty.
bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\n\r\f\v") == std::string_view::npos; }

struct FoundFile {
  fs::path path;
  Format format;
};

}  // namespace

struct DocumentReader::State {
  std::vector<fs::path> roots;
  ExtractOptions options;
  ExtractCounts counts;
  JsonLineParser json;

  size_t next_root = 0;
  std::vector<FoundFile> files;  // of the present root, in order
  size_t next_file = 0;

  fs::path path;  // of the last document
  Format format = Format::kText;
  std::unique_ptr<ByteStream> stream;  // only while a JSON-lines file is being read
  std::string buffer;                  // read from it, not yet handed out
  size_t buffer_begin = 0;
  int64_t line = 0;

  State(std::vector<fs::path> paths, ExtractOptions given) : roots(std::move(paths)), options(std::move(given)), json(options.field) {}

  void expand(const fs::path& root);
  bool open_next_file();
  bool next_raw(std::string& document, int64_t& replaced);
  std::string read_whole();
  bool next_line(std::string& out);
  [[noreturn]] void fail_too_long() const;
  std::string where() const { return line > 0 ? path.string() + ":" + std::to_string(line) : path.string(); }
};

void DocumentReader::State::expand(const fs::path& root) {
  files.clear();
  next_file = 0;
  std::error_code error;
  const fs::file_status status = fs::status(root, error);
  if (!fs::exists(status))
    throw InputError(Complaint{.where = root.string(), .found = "nothing there", .expected = "a file or directory of text", .hint = ""});
  if (!fs::is_directory(status)) {
    files.push_back({root, format_of(root).value_or(Format::kText)});
    return;
  }
  fs::recursive_directory_iterator it(root, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    std::error_code ignored;  // a link to nowhere is no text
    if (it->is_directory(ignored)) continue;
    const std::optional<Format> format = it->is_regular_file(ignored) ? format_of(it->path()) : std::nullopt;
    if (format) {
      files.push_back({it->path(), *format});
    } else {
      ++counts.skipped_files;
    }
  }
  if (error) throw InputError(root.string() + ": cannot read the directory: " + error.message());
  std::sort(files.begin(), files.end(), [](const FoundFile& a, const FoundFile& b) { return a.path.native() < b.path.native(); });
}

bool DocumentReader::State::open_next_file() {
  while (next_file == files.size()) {
    if (next_root == roots.size()) return false;
    expand(roots[next_root++]);
  }
  path = files[next_file].path;
  format = files[next_file].format;
  ++next_file;
  ++counts.files;
  line = 0;
  return true;
}

void DocumentReader::State::fail_too_long() const {
  throw DataError(Complaint{.where = where(),
                            .found = "a document of more than " + std::to_string(options.max_document_bytes) + " bytes",
                            .expected = "less",
                            .hint = "cut it into several files, or into lines of JSON"});
}

std::string DocumentReader::State::read_whole() {
  constexpr size_t kBlock = 1 << 18;
  const std::unique_ptr<ByteStream> source = ByteStream::open(path);
  std::string bytes;
  while (true) {
    const size_t size = bytes.size();
    bytes.resize(size + kBlock);
    const size_t count = source->read(bytes.data() + size, kBlock);
    bytes.resize(size + count);
    if (count == 0) return bytes;
    if (static_cast<int64_t>(bytes.size()) > options.max_document_bytes) fail_too_long();
  }
}

// Without the line end; the last line may have none.
bool DocumentReader::State::next_line(std::string& out) {
  constexpr size_t kBlock = 1 << 18;
  size_t searched = buffer_begin;
  while (true) {
    const size_t newline = buffer.find('\n', searched);
    const bool found = newline != std::string::npos;
    searched = buffer.size();
    if (found) {
      ++line;
      out.assign(buffer, buffer_begin, newline - buffer_begin);
      buffer_begin = newline + 1;
      return true;
    }
    buffer.erase(0, buffer_begin);
    searched -= std::exchange(buffer_begin, 0);
    if (static_cast<int64_t>(buffer.size()) > options.max_document_bytes) {
      ++line;
      fail_too_long();
    }
    buffer.resize(searched + kBlock);
    const size_t count = stream->read(buffer.data() + searched, kBlock);
    buffer.resize(searched + count);
    if (count > 0) continue;
    if (buffer.empty()) return false;
    ++line;
    out = std::exchange(buffer, {});
    return true;
  }
}

bool DocumentReader::State::next_raw(std::string& document, int64_t& replaced) {
  while (true) {
    if (stream) {
      while (next_line(document)) {
        if (line == 1 && document.starts_with("\xEF\xBB\xBF")) document.erase(0, 3);
        if (is_blank(document)) continue;
        document = json.text(std::move(document), where(), replaced);
        return true;
      }
      stream.reset();
      buffer_begin = 0;
    }
    if (!open_next_file()) return false;
    if (format == Format::kJsonLines) {
      stream = ByteStream::open(path);
      continue;
    }
    document = read_whole();
    if (format == Format::kHtml) {
      document = html_text(std::move(document), replaced);
    } else {
      replaced = replace_invalid_utf8(document);
    }
    return true;
  }
}

DocumentReader::DocumentReader(std::vector<fs::path> paths, ExtractOptions options)
    : state_(std::make_unique<State>(std::move(paths), std::move(options))) {}
DocumentReader::DocumentReader(DocumentReader&&) noexcept = default;
DocumentReader::~DocumentReader() = default;

bool DocumentReader::next(std::string& document) {
  ExtractCounts& counts = state_->counts;
  int64_t replaced = 0;
  while (state_->next_raw(document, replaced)) {
    counts.replaced += std::exchange(replaced, 0);
    if (is_blank(document)) {
      ++counts.empty_documents;
      continue;
    }
    ++counts.documents;
    counts.bytes += static_cast<int64_t>(document.size());
    return true;
  }
  return false;
}

const ExtractCounts& DocumentReader::counts() const { return state_->counts; }
std::string DocumentReader::where() const { return state_->where(); }

}  // namespace dz::text
