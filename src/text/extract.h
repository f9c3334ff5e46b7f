// Documents out of files: plain text, HTML and JSON lines, compressed or not, one after another in a fixed order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "text/input_files.h"

namespace dz::text {

struct ExtractOptions {
  std::string field = "text";                     // of a JSON line; "doc.body" is body inside doc, unless a key has that very name
  int64_t max_document_bytes = int64_t{1} << 30;  // after decompression; a longer one is a DataError, not a full memory
  std::string id_field = "id";                    // of a JSON line, spelled like `field`; a line may lack it
  bool strip = false;                             // white space at both ends, as Python's str.strip(): Dolma's rule
  bool skip_bad_lines = false;                    // count lines that are no JSON or lack the field, rather than stop at the first
};

struct ExtractCounts {
  int64_t files = 0;
  int64_t skipped_files = 0;           // unknown extension, inside a directory
  int64_t documents = 0;               // handed out
  int64_t empty_documents = 0;         // nothing but white space; dropped
  int64_t bytes = 0;                   // of the documents handed out, as UTF-8
  int64_t replaced = 0;                // ill-formed UTF-8 parts that became U+FFFD
  int64_t bad_lines = 0;               // left out because of skip_bad_lines
  std::vector<std::string> first_bad;  // what was wrong with the first few of them
};

struct Document {
  std::string text;
  std::string id;    // of a JSON line, numbers as they are spelled there; empty when there is none
  int64_t file = 0;  // place in DocumentReader::inputs().files
  int64_t line = 0;  // from 1; 1 for a whole file
};

// Where a reader stands between two documents.
struct ReaderPosition {
  int64_t file = 0;    // the file that is next, or being read
  int64_t line = 0;    // lines of it that are done
  int64_t offset = 0;  // their bytes, after decompression
  friend bool operator==(const ReaderPosition&, const ReaderPosition&) = default;
};

// A document is a whole file or one field of a JSON line, in the order of list_inputs; HTML gives its text only. NUL bytes and byte-order
// marks of text files are kept: byte-level BPE can spell them. A key that is twice in an object counts by its last value, as in Python.
// Holds one document at a time. InputError for a missing path, DataError for damaged compression or JSON, with path and line.
class DocumentReader {
 public:
  DocumentReader(const std::vector<std::filesystem::path>& paths, ExtractOptions options = {});
  DocumentReader(InputFiles inputs, ExtractOptions options);
  DocumentReader(DocumentReader&&) noexcept;
  ~DocumentReader();

  bool next(Document& document);  // false at the end
  bool next(std::string& text);

  // Goes on at a position that a reader of the same inputs and options gave, with its counts. Compressed files are read from their start.
  // DataError when the file ends before that position.
  void seek(const ReaderPosition& position, const ExtractCounts& counts);
  ReaderPosition position() const;

  const InputFiles& inputs() const;
  const ExtractCounts& counts() const;
  int64_t input_bytes() const;  // of the files, on disk, that have been read so far
  std::string where() const;    // path, or path:line, of the last document

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dz::text
