// Any bytes as a JSON-lines corpus: the first byte chooses the options, the rest is the file. Lines are read, refused or left out; text is
// UTF-8, and reading goes on from the middle as it would have without a stop.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.h"
#include "fuzz/fuzz.h"
#include "text/extract.h"
#include "text/strip.h"
#include "text/unicode.h"

namespace {

using dz::text::Document;
using dz::text::DocumentReader;

void check(bool good) {
  if (!good) std::abort();
}

dz::text::InputFiles as_input(int memory, size_t size) {
  dz::text::InputFiles inputs;
  inputs.files.push_back({.path = "/proc/self/fd/" + std::to_string(memory), .format = dz::text::Format::kJsonLines});
  inputs.bytes = inputs.files[0].bytes = static_cast<int64_t>(size);
  return inputs;
}

// The documents up to the first error, and where the reader stood in the middle.
std::vector<Document> read(DocumentReader& reader, dz::text::ReaderPosition& middle, dz::text::ExtractCounts& counts, size_t stop) {
  std::vector<Document> documents;
  try {
    for (Document document; reader.next(document);) {
      documents.push_back(document);
      if (documents.size() != stop) continue;
      middle = reader.position();
      counts = reader.counts();
    }
  } catch (const dz::Error&) {
  }
  return documents;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const uint8_t choice = data[0];
  const int memory = ::memfd_create("fuzz", 0);
  check(memory >= 0 && ::write(memory, data + 1, size - 1) == static_cast<ssize_t>(size - 1));
  const dz::text::ExtractOptions options{.field = choice & 1 ? "a.b" : "text",
                                         .max_document_bytes = choice & 2 ? 100 : 1 << 20,
                                         .id_field = choice & 4 ? "text" : "id",
                                         .strip = (choice & 8) != 0,
                                         .skip_bad_lines = (choice & 16) != 0};
  DocumentReader reader(as_input(memory, size - 1), options);
  dz::text::ReaderPosition middle;
  dz::text::ExtractCounts counts;
  const size_t stop = 1 + choice / 32;
  const std::vector<Document> all = read(reader, middle, counts, stop);
  for (const Document& document : all) {
    std::string text = document.text;
    check(dz::text::replace_invalid_utf8(text) == 0);
    check(static_cast<int64_t>(text.size()) <= 3 * static_cast<int64_t>(size));
    if (!options.strip) continue;
    dz::text::strip_like_python(text);
    check(text == document.text);
  }
  if (all.size() >= stop) {
    DocumentReader again(as_input(memory, size - 1), options);
    again.seek(middle, counts);
    const std::vector<Document> rest = read(again, middle, counts, 0);
    check(rest.size() == all.size() - stop);
    for (size_t i = 0; i < rest.size(); ++i) check(rest[i].text == all[stop + i].text && rest[i].line == all[stop + i].line);
  }
  dz::fuzz::accepted += !all.empty();
  ::close(memory);
  return 0;
}
