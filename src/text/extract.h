// Documents out of files: plain text, HTML and JSON lines, compressed or not, one after another in a fixed order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace dz::text {

struct ExtractOptions {
  std::string field = "text";                     // of a JSON line
  int64_t max_document_bytes = int64_t{1} << 30;  // after decompression; a longer one is a DataError, not a full memory
};

struct ExtractCounts {
  int64_t files = 0;
  int64_t skipped_files = 0;    // unknown extension, inside a directory
  int64_t documents = 0;        // handed out
  int64_t empty_documents = 0;  // nothing but white space; dropped
  int64_t bytes = 0;            // of the documents handed out, as UTF-8
  int64_t replaced = 0;         // ill-formed UTF-8 parts that became U+FFFD
};

// Walks files and directories (recursively, each directory's files in bytewise order of their path; links to directories are not followed).
// Known endings: txt, text, md, rst, pod (as they are), html, htm, xhtml (text only), jsonl, ndjson (one document a line), each also
// with .gz or .zst behind. A file that is named directly and has another ending is taken as plain text.
// A document is the whole file or the whole line's field; NUL bytes and byte-order marks are kept: byte-level BPE can spell them.
// Holds one document at a time. InputError for a missing path, DataError for damaged compression or JSON, with path and line.
class DocumentReader {
 public:
  DocumentReader(std::vector<std::filesystem::path> paths, ExtractOptions options = {});
  DocumentReader(DocumentReader&&) noexcept;
  ~DocumentReader();

  bool next(std::string& document);  // false at the end
  const ExtractCounts& counts() const;
  std::string where() const;  // path, or path:line, of the last document

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dz::text
