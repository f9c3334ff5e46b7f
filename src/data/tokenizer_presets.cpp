#include "data/tokenizer_presets.h"

#include <array>

namespace dz::data {
namespace {

// "dolma3" is dolma2 under another name.
constexpr std::array<TokenizerPreset, 5> kPresets = {{
    {"dolma2", "allenai/dolma2-tokenizer", {.size = 100278, .eos_id = 100257, .pad_id = 100277}},
    {"dolma2-sigdig", "allenai/dolma2-tokenizer-sigdig", {.size = 100278, .eos_id = 100257, .pad_id = 100277, .bos_id = 100257}},
    {"dolma3", "allenai/dolma3-tokenizer", {.size = 100278, .eos_id = 100257, .pad_id = 100277}},
    {"neox-olmo-dolma-v1_5", "allenai/gpt-neox-olmo-dolma-v1_5", {.size = 50280, .eos_id = 50279, .pad_id = 1}},
    {"gpt2", "gpt2", {.size = 50257, .eos_id = 50256, .pad_id = 50256, .bos_id = 50256}},
}};

}  // namespace

std::optional<TokenizerPreset> tokenizer_preset(std::string_view name) {
  for (const TokenizerPreset& preset : kPresets) {
    if (name == preset.name || name == preset.identifier) return preset;
  }
  return std::nullopt;
}

std::vector<std::string> tokenizer_preset_names() {
  std::vector<std::string> names;
  for (const TokenizerPreset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

}  // namespace dz::data
