// What the tensors of a model are called: Hugging Face's names, which are ours, and OLMo-core's. Renaming is all: no tensor is transposed,
// permuted or split between the two (olmo_core/nn/hf/convert.py; tests/golden/conversion/olmo_core_names.json).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"

namespace dz::convert {

enum class Names : uint8_t { kHuggingFace, kOlmoCore };

// "model.layers.3.mlp.up_proj.weight" -> "blocks.3.feed_forward.w3.weight". A name of another model has none.
std::optional<std::string> olmo_core_name(std::string_view hugging_face);

// The order of transformers' state dict, by which shards are filled: embedding, layers by number, final norm, head.
std::vector<model::ParameterSpec> state_dict_order(const model::ModelConfig& config);

}  // namespace dz::convert
