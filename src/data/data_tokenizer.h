// The tokenizer that belongs to tokens: checkpoints carry it, so a wrong one would follow a model wherever it goes.
#pragma once

#include <string>

#include "data/token_shards.h"

namespace dz::data {

struct DataTokenizer {
  std::string json;  // of tokenizer.json; empty when there is none
  std::string note;  // for people: the manifest names one that is not there; else empty
};

// tokenizer.json beside the shards. DataError with both hashes when it is not the one that the manifest names; where the manifest names none, errors
// of check_tokenizer.
DataTokenizer tokenizer_of(const TokenShards& shards);

// DataError naming `where` when the text is no tokenizer.json that we read; ConfigError when its ids are not all below `vocab_size`.
void check_tokenizer(const std::string& json, const std::string& where, int64_t vocab_size);

}  // namespace dz::data
