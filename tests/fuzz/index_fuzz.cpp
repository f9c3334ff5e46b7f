// Damaged indexes: what is accepted is consistent, so that every instance is found inside its file, and is written as it was read.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "data/index.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dz::data;
  try {
    const TokenIndex index = parse_index({reinterpret_cast<const char*>(data), size}, "fuzz");
    const int64_t last = index.total_instances() - 1;
    for (const int64_t id : {int64_t{0}, last / 2, last}) {
      if (id < 0) continue;
      const IndexPlace place = find_instance(index, id);
      const IndexedFile& file = index.files[static_cast<size_t>(place.file)];
      if (place.token < 0 || place.token > file.tokens - index.sequence_length) std::abort();
    }
    ++dz::fuzz::accepted;
    const bool ours = index.vocabulary.size > 0;
    const std::string text = ours ? index_json(index) : maxtext_index_json(index);
    const TokenIndex again = parse_index(text, "again");
    if ((ours ? index_json(again) : maxtext_index_json(again)) != text) std::abort();
  } catch (const dz::Error&) {
  }
  return 0;
}
