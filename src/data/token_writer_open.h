// The growing file of one source and split. Internal to TokenShardWriter.
#pragma once

#include <memory>
#include <string>

#include "data/shard_output.h"
#include "data/token_writer.h"

namespace dz::data {

struct TokenShardWriter::Open {
  // Where its next file goes; where its present one lies, as long as that is not in the manifest.
  ShardOutput::Place place(const TokenShardWriter& writer) const;
  size_t source = 0;
  Split split = Split::kTrain;
  std::string stem;
  std::unique_ptr<ShardOutput> output;  // none between two files
  ShardOutput::Synced synced;           // of the last commit of that file
};

}  // namespace dz::data
