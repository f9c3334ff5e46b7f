// Damaged mix files: refused by line, or read into no more than they hold.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "data/mix.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dz::data;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const std::vector<MixEntry> entries = parse_mix(text, tokenizer_folder(text.substr(0, 32), "allenai/dolma2-tokenizer"), "fuzz");
    size_t bytes = 0;
    for (const MixEntry& entry : entries) {
      if (entry.path.find("{TOKENIZER}") != std::string::npos) std::abort();
      bytes += entry.label.size() + 1;
    }
    ++dz::fuzz::accepted;
    if (bytes > size || summarize(entries).count != static_cast<int64_t>(entries.size())) std::abort();
  } catch (const dz::Error&) {
  }
  return 0;
}
