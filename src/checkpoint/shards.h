// A model in several files, as transformers writes it: which tensor goes where, and the index that says so.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/safetensors.h"

namespace dz::checkpoint {

inline constexpr int64_t kDefaultShardBytes = 5'000'000'000;  // "5GB", decimal, as transformers 4 has it

struct Shard {
  std::string file;  // model.safetensors, or model-00001-of-00003.safetensors
  std::vector<TensorSpec> tensors;
};

// Greedy in the given order (the reference's is that of the model's state dict): a tensor that does not fit opens the next file; one larger
// than `max_bytes` has a file to itself. A single file is called model.safetensors and has no index.
std::vector<Shard> plan_shards(std::vector<TensorSpec> tensors, int64_t max_bytes);

// The bytes of model.safetensors.index.json as transformers writes them: sorted keys, two spaces, a final newline.
std::string index_json(const std::vector<Shard>& shards);

}  // namespace dz::checkpoint
