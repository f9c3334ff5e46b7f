// The token sequences that two models are compared on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"

namespace dz::eval {

struct TokenSequence {
  std::string name;
  int64_t instances = 1;
  std::vector<int32_t> tokens;  // [instances, seq]
  int64_t seq() const { return static_cast<int64_t>(tokens.size()) / instances; }
};

struct TokenFileSettings {
  int64_t vocab_size = 0;  // ids are below
  int64_t length = 2048;   // of the sequences that a .npy file is cut into; its last tokens, fewer than that, are left out
  int64_t sequences = 4;   // at most so many of a .npy file
};

// NAME.safetensors: every NAME.input_ids, I64 or I32. NAME.npy: token files as `tokenize` writes them, and true .npy arrays. Any other file: ids,
// a sequence a line (text/id_lines.h). InputError, CheckpointError; DataError naming file, place and id.
std::vector<TokenSequence> read_token_sequences(const fs::path& path, const TokenFileSettings& settings);

}  // namespace dz::eval
