// What a restart of tokenize needs to know beside the files: the note that TokenShardWriter keeps with each commit. Internal to this room.
#pragma once

#include <string>
#include <vector>

#include "data/held_out.h"
#include "data/tokenize.h"

namespace dz::data {

struct TokenizeState {
  std::vector<TokenizeCounts> counts;  // of the sources done, and of the present one
  int64_t done = 0;                    // sources
  text::ReaderPosition position;       // in the present one
  HeldOutChooser::State held_out;
};

std::string to_json(const TokenizeState& state);
TokenizeState parse_tokenize_state(const std::string& json);  // DataError

}  // namespace dz::data
