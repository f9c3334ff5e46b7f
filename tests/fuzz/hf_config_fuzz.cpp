// Damaged config.json files: refused, or read into a shape that is written and read back as the same.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "fuzz/fuzz.h"
#include "model/config.h"
#include "model/hf_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dz::model;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const ModelConfig config = from_hf_json(text, "fuzz");
    ++dz::fuzz::accepted;
    if (!(from_hf_json(to_hf_json(config), "written") == config)) std::abort();
    if (!(from_hf_json(with_portable_rope(text, "fuzz"), "rewritten") == config)) std::abort();
    for (int64_t layer = 0; layer < config.n_layers; ++layer) {
      if (config.head_dim <= 256) dz::numerics::make_rope_table(config.rope_of(layer), 2, config.rope_table);
    }
  } catch (const dz::Error&) {
  }
  return 0;
}
