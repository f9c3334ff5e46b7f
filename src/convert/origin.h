// What a native checkpoint remembers of the Hugging Face directory it came from, so that converting back gives the same files: the file
// hugging_face.json of the checkpoint.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace dz::convert {

inline constexpr const char* kOriginName = "hugging_face.json";

struct Origin {
  std::string config;                         // config.json, its bytes; rope in the spelling that every reader takes
  std::map<std::string, std::string> dtypes;  // tensor -> the format's dtype in the original weights
  std::vector<std::string> side_files;        // their names, in the same checkpoint
};

std::string to_json(const Origin& origin);
Origin parse_origin(std::string_view text, const std::string& where);  // CheckpointError

}  // namespace dz::convert
