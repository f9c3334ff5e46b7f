#include "text/extract.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "text/byte_stream.h"
#include "text/html.h"
#include "text/json_line.h"
#include "text/strip.h"
#include "text/unicode.h"

namespace dz::text {
namespace fs = std::filesystem;
namespace {

constexpr size_t kBlock = size_t{1} << 18;
constexpr size_t kBadLinesToShow = 5;

// Blanks of ASCII are enough to call a document empty.
bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\n\r\f\v") == std::string_view::npos; }

}  // namespace

struct DocumentReader::State {
  InputFiles inputs;
  ExtractOptions options;
  ExtractCounts counts;
  JsonLineParser json;

  ReaderPosition at;
  int64_t bytes_before = 0;            // on disk, of the files in front of at.file
  ReaderPosition last;                 // file and line of the last document; line 0 for a whole file
  std::unique_ptr<ByteStream> stream;  // only while a JSON-lines file is being read
  std::string buffer;                  // read from it, not yet handed out
  size_t buffer_begin = 0;

  State(InputFiles given, ExtractOptions chosen)
      : inputs(std::move(given)), options(std::move(chosen)), json({.field = options.field, .id_field = options.id_field}) {
    counts.skipped_files = inputs.skipped;
  }

  const InputFile& file() const { return inputs.files[static_cast<size_t>(at.file)]; }
  std::string where_line() const { return file().path + ":" + std::to_string(at.line); }
  void leave_file();
  bool next_raw(Document& document, int64_t& replaced);
  void read_whole(std::string& bytes);
  bool next_line(std::string& out);
  bool read_block();
  bool parse_line(Document& document, int64_t& replaced);
  void note_bad(const Error& error);
  DataError too_long(const std::string& where) const;
};

void DocumentReader::State::leave_file() {
  bytes_before += file().bytes;
  at = {.file = at.file + 1};
  stream.reset();
  buffer.clear();
  buffer_begin = 0;
}

DataError DocumentReader::State::too_long(const std::string& where) const {
  return DataError(Complaint{.where = where,
                             .found = "a document of more than " + std::to_string(options.max_document_bytes) + " bytes",
                             .expected = "less",
                             .hint = "cut it into several files, or into lines of JSON"});
}

void DocumentReader::State::read_whole(std::string& bytes) {
  const std::unique_ptr<ByteStream> source = ByteStream::open(file().path);
  bytes.clear();
  while (true) {
    const size_t size = bytes.size();
    bytes.resize(size + kBlock);
    const size_t count = source->read(bytes.data() + size, kBlock);
    bytes.resize(size + count);
    if (count == 0) return;
    if (static_cast<int64_t>(bytes.size()) > options.max_document_bytes) throw too_long(file().path);
  }
}

// Appends a block to the buffer; false at the end of the file.
bool DocumentReader::State::read_block() {
  const size_t size = buffer.size();
  buffer.resize(size + kBlock);
  const size_t count = stream->read(buffer.data() + size, kBlock);
  buffer.resize(size + count);
  return count > 0;
}

// Without the line end; the last line may have none.
bool DocumentReader::State::next_line(std::string& out) {
  size_t searched = buffer_begin;
  while (true) {
    const size_t newline = buffer.find('\n', searched);
    const bool found = newline != std::string::npos;
    if (found || static_cast<int64_t>(buffer.size() - buffer_begin) > options.max_document_bytes) {
      const size_t end = found ? newline : buffer.size();
      ++at.line;
      if (static_cast<int64_t>(end - buffer_begin) > options.max_document_bytes) throw too_long(where_line());
      out.assign(buffer, buffer_begin, end - buffer_begin);
      at.offset += static_cast<int64_t>(end + 1 - buffer_begin);
      buffer_begin = end + 1;
      return true;
    }
    buffer.erase(0, std::exchange(buffer_begin, 0));
    searched = buffer.size();
    if (read_block()) continue;
    if (buffer.empty()) return false;
    ++at.line;
    at.offset += static_cast<int64_t>(buffer.size());
    out = std::exchange(buffer, {});
    return true;
  }
}

void DocumentReader::State::note_bad(const Error& error) {
  ++counts.bad_lines;
  if (counts.first_bad.size() < kBadLinesToShow) counts.first_bad.emplace_back(error.what());
}

// False for a line that holds no document.
bool DocumentReader::State::parse_line(Document& document, int64_t& replaced) {
  std::string& line = document.text;
  if (at.line == 1 && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
  if (is_blank(line)) return false;
  try {
    json.parse(std::move(line), where_line(), document.text, document.id, replaced);
  } catch (const DataError& error) {
    if (!options.skip_bad_lines) throw;
    note_bad(error);
    replaced = 0;
    return false;
  }
  document.line = at.line;
  last = at;
  return true;
}

bool DocumentReader::State::next_raw(Document& document, int64_t& replaced) {
  for (; at.file < static_cast<int64_t>(inputs.files.size()); leave_file()) {
    document.file = at.file;
    if (file().format == Format::kJsonLines) {
      if (!stream) {
        stream = ByteStream::open(file().path);
        ++counts.files;
      }
      while (next_line(document.text)) {
        if (parse_line(document, replaced)) return true;
      }
      continue;
    }
    read_whole(document.text);
    ++counts.files;
    document.id.clear();
    document.line = 1;
    last = at;
    if (file().format == Format::kHtml) {
      document.text = html_text(std::move(document.text), replaced);
    } else {
      replaced = replace_invalid_utf8(document.text);
    }
    leave_file();
    return true;
  }
  return false;
}

DocumentReader::DocumentReader(const std::vector<fs::path>& paths, ExtractOptions options) : DocumentReader(list_inputs(paths), std::move(options)) {}
DocumentReader::DocumentReader(InputFiles inputs, ExtractOptions options) : state_(std::make_unique<State>(std::move(inputs), std::move(options))) {}
DocumentReader::DocumentReader(DocumentReader&&) noexcept = default;
DocumentReader::~DocumentReader() = default;

bool DocumentReader::next(Document& document) {
  ExtractCounts& counts = state_->counts;
  int64_t replaced = 0;
  while (state_->next_raw(document, replaced)) {
    counts.replaced += std::exchange(replaced, 0);
    if (state_->options.strip) strip_like_python(document.text);
    if (is_blank(document.text)) {
      ++counts.empty_documents;
      continue;
    }
    ++counts.documents;
    counts.bytes += static_cast<int64_t>(document.text.size());
    return true;
  }
  return false;
}

bool DocumentReader::next(std::string& text) {
  Document document;
  document.text = std::move(text);
  const bool found = next(document);
  text = std::move(document.text);
  return found;
}

void DocumentReader::seek(const ReaderPosition& position, const ExtractCounts& counts) {
  State& state = *state_;
  const auto files = static_cast<int64_t>(state.inputs.files.size());
  DZ_CHECK(position.file >= 0 && position.file <= files && position.line >= 0 && position.offset >= 0, "file", position.file, "files", files);
  state.stream.reset();
  state.buffer.clear();
  state.buffer_begin = 0;
  state.bytes_before = 0;
  for (int64_t i = 0; i < position.file; ++i) state.bytes_before += state.inputs.files[static_cast<size_t>(i)].bytes;
  state.at = position;
  state.counts = counts;
  if (position.line == 0 || position.file == files) return;
  state.stream = ByteStream::open(state.file().path);
  state.stream->skip(position.offset);
}

ReaderPosition DocumentReader::position() const { return state_->at; }
const InputFiles& DocumentReader::inputs() const { return state_->inputs; }
const ExtractCounts& DocumentReader::counts() const { return state_->counts; }
int64_t DocumentReader::input_bytes() const { return state_->bytes_before + (state_->stream ? state_->stream->consumed() : 0); }
std::string DocumentReader::where() const {
  const ReaderPosition& last = state_->last;
  if (inputs().files.empty()) return "";
  const std::string& path = inputs().files[static_cast<size_t>(last.file)].path;
  return last.line > 0 ? path + ":" + std::to_string(last.line) : path;
}

}  // namespace dz::text
