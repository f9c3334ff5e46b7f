// The list of documents beside a token file, X.csv.gz beside X.npy, as Dolma writes and OLMo-core reads it: start,end,id,src,loc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/file.h"

namespace dz::data {

// Where a document comes from.
struct DocumentOrigin {
  std::string_view id;   // of the document in its file; may be empty
  std::string_view src;  // that file
  int64_t loc = 0;       // its line there, from 1; 0: no origin is known and the row ends with three empty columns
};

// "start,end,id,src,loc\n": tokens [start, end) of the file, the EOS included. Quoted as Python's csv module does where that is needed, but
// for control characters, which become spaces: OLMo-core takes each line for a row.
std::string document_row(int64_t start, int64_t end, const DocumentOrigin& origin);

// Compresses `from` to `to` and syncs it. The same bytes give the same file: no name and no time go in.
void gzip_file(const fs::path& from, const fs::path& to);

}  // namespace dz::data
