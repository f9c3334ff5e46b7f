#include "checkpoint/shards.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/check.h"

namespace dz::checkpoint {

std::vector<Shard> plan_shards(std::vector<TensorSpec> tensors, int64_t max_bytes) {
  DZ_CHECK(max_bytes > 0, "max_bytes", max_bytes);
  std::vector<Shard> shards(1);
  int64_t used = 0;
  for (TensorSpec& tensor : tensors) {
    const int64_t bytes = tensor.bytes();
    if (!shards.back().tensors.empty() && bytes > max_bytes - used) {
      shards.emplace_back();
      used = 0;
    }
    used += bytes;
    shards.back().tensors.push_back(std::move(tensor));
  }
  if (shards.size() == 1) {
    shards[0].file = "model.safetensors";
    return shards;
  }
  for (size_t i = 0; i < shards.size(); ++i) {
    char name[64];
    std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", i + 1, shards.size());
    shards[i].file = name;
  }
  return shards;
}

std::string index_json(const std::vector<Shard>& shards) {
  int64_t bytes = 0, elements = 0;
  nlohmann::json map = nlohmann::json::object();  // sorts its keys
  for (const Shard& shard : shards) {
    for (const TensorSpec& tensor : shard.tensors) {
      bytes += tensor.bytes();
      elements += element_count(tensor.shape);
      map[tensor.name] = shard.file;
    }
  }
  const nlohmann::json index{{"metadata", {{"total_parameters", elements}, {"total_size", bytes}}}, {"weight_map", std::move(map)}};
  return index.dump(2) + "\n";
}

}  // namespace dz::checkpoint
