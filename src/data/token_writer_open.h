// The growing file of one source and split. Internal to TokenShardWriter.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>

#include "data/shard_output.h"
#include "data/token_writer.h"

namespace dz::data {

struct TokenShardWriter::Open {
  // Where its next file goes; where its present one lies, as long as that is not in the manifest.
  ShardOutput::Place place(const TokenShardWriter& writer) const {
    const size_t number = writer.manifest_.sources[source].stream(split).files.size();
    return {.directory = writer.partial_,
            .stem = fmt::format("{}-{:05}", stem, number),
            .type = writer.manifest_.type,
            .chunk_bytes = writer.settings_.chunk_bytes};
  }
  size_t source = 0;
  Split split = Split::kTrain;
  std::string stem;
  std::unique_ptr<ShardOutput> output;  // none between two files
};

}  // namespace dz::data
