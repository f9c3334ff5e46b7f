// The files beside the weights of a Hugging Face directory that travel with a model: tokenizer, generation_config.json, chat template,
// licence. Never weights, directories, or what a link from outside would bring in.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace dz::convert {

inline constexpr int64_t kMaxSideFile = int64_t{64} << 20;  // bytes; tokenizer.json of dolma2 has 7 million
inline constexpr size_t kMaxSideFiles = 256;

struct SideFiles {
  std::vector<std::string> names;  // sorted; plain names of files in the directory
  std::vector<std::string> notes;  // what was left out and why
};

// Regular files of `directory`, and links whose target lies in the directory or, as in the Hugging Face cache, in ../../blobs. Left out
// silently: config.json, weights in any format and their indexes, hidden files, directories. Left out with a note: links that lead
// elsewhere, special files, files beyond the limits.
SideFiles find_side_files(const fs::path& directory);

// Weights by their name: .safetensors, .bin, .pt and so on, and the indexes of such files.
bool is_weights(std::string_view name);

}  // namespace dz::convert
