// Reading the optimizer goldens.
#pragma once

#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"

namespace dz::test {

using Json = nlohmann::json;

inline std::string golden_path(const std::string& name) { return std::string(DZ_GOLDEN "/optim/") + name; }
// Kept, so that a loop over a part of it loops over something that lives.
inline const Json& golden_json(const std::string& name) {
  static std::map<std::string, Json> kept;
  const auto [entry, added] = kept.try_emplace(name);
  if (added) entry->second = Json::parse(std::ifstream(golden_path(name)));
  return entry->second;
}

inline double hex(const Json& text) { return std::strtod(text.get_ref<const std::string&>().c_str(), nullptr); }
inline float hex_float(const Json& text) { return std::strtof(text.get_ref<const std::string&>().c_str(), nullptr); }

inline std::vector<float> read_tensor(const checkpoint::TensorSource& source, const std::string& name) {
  const checkpoint::StoredTensor& tensor = source.at(name);
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  source.read_f32(tensor, values);
  return values;
}

}  // namespace dz::test
