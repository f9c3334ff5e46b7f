// What tokenizer.json does before and behind the merges. Internal to this room.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/pre_tokenizer.h"

namespace dz::text {

struct Pipeline {
  bool nfc = false;
  PreTokenizer pre_tokenizer;
  std::vector<int32_t> in_front;  // what the post-processor's template adds, when it is asked for
  std::vector<int32_t> behind;
};

// `json`: an object with the parts normalizer, pre_tokenizer, post_processor and decoder of the file. DataError naming `where`, part and key for
// everything that is not done exactly as in the library.
Pipeline parse_pipeline(std::string_view json, const std::string& where);

}  // namespace dz::text
