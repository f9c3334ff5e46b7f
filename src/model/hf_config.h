// config.json beyond the fields of a ModelConfig: which of its spellings a file uses, and how one is rewritten for other readers.
// from_hf_json and to_hf_json are in model/config.h. Facts about released readers: transformers 4.57.3 and 5.24.0, run on each spelling.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"

namespace dz::model {

// The same rotary embedding is written in four ways. Released readers agree on the first two only.
enum class RopeSpelling : uint8_t {
  kPlain,    // rope_theta, rope_scaling null or absent
  kScaling,  // rope_theta, rope_scaling {rope_type: yarn, ...}; in old files `type` for rope_type
  kFlat,     // rope_parameters {rope_theta, rope_type, ...}
  kNested,   // rope_parameters {full_attention: {...}, sliding_attention: {...}}
};

// DataError when `text` is no JSON object; nothing else is checked.
RopeSpelling rope_spelling(std::string_view text, const std::string& path);

// The type of the weights as the file says it, "dtype" or the older "torch_dtype"; "" when it does not. Errors as rope_spelling.
std::string hf_dtype(std::string_view text, const std::string& path);

// The file with every key kept and its rotary embedding in a spelling that all readers take: rope_theta and rope_scaling. A file that is
// spelled so already comes back as it is (also without attention_factor: every reader computes the same); YaRN on every layer stays nested,
// because no other spelling says it. Errors as from_hf_json.
std::string with_portable_rope(std::string_view text, const std::string& path);

// What released readers make of to_hf_json(config) that this program does not: one sentence each, empty when they agree.
std::vector<std::string> misreadings(const ModelConfig& config);

}  // namespace dz::model
