// X.csv.gz beside the token file X.npy: one row START,END[,anything] a document, in tokens, END exclusive. Written by the Dolma toolkit (five
// columns, CRLF) and by OLMo-core (two columns; OLMo-core: data/utils.py iter_document_indices, write_document_indices).
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/file.h"

namespace dz::data {

struct DocumentRange {
  int64_t start = 0, end = 0;  // tokens of an entry, or of some entries joined; end exclusive
  int64_t length() const { return end - start; }
  friend bool operator==(const DocumentRange&, const DocumentRange&) = default;
};

// The metadata file of a token file: ".npy" of its name becomes ".csv.gz". DataError for a name without ".npy".
fs::path document_metadata_path(const fs::path& token_file);

// Calls `visit` with each row in the order of the file, holding one block at a time. `tokens` is the length of the token file: rows must lie in
// it, in ascending order and apart from each other. DataError naming file and line: anything else, not gzip, cut off, a row of more than
// 1 MiB. InputError: no such file.
void read_document_metadata(const fs::path& path, int64_t tokens, const std::function<void(DocumentRange)>& visit);

// SHA-256 of the file as it is.
std::string document_metadata_digest(const fs::path& path);

}  // namespace dz::data
