// Any bytes as the manifest of a token directory: refused with a reason, or read, and then written and read again as the same.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "data/token_shards.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const dz::data::TokenManifest manifest = dz::data::parse_token_manifest(text, "manifest.json");
    if (manifest.tokens(dz::data::Split::kTrain) < 0) std::abort();
    if (dz::data::parse_token_manifest(dz::data::to_json(manifest), "manifest.json") != manifest) std::abort();
    if (!dz::data::differences(manifest, manifest).empty()) std::abort();
    ++dz::fuzz::accepted;
  } catch (const dz::Error&) {
  }
  return 0;
}
