// The recorded answers of the `tokenizers` library (tests/golden/tokenizer/README.md).
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"

namespace dz::text {

inline std::string golden_path(const std::string& name) { return std::string(DZ_GOLDEN) + "/tokenizer/" + name; }
inline std::string golden_text(const std::string& name) { return read_file(golden_path(name)); }
// Kept, so that a loop over a part of it loops over something that lives.
inline const nlohmann::json& golden_json(const std::string& name) {
  static std::map<std::string, nlohmann::json> kept;
  const auto [entry, added] = kept.try_emplace(name);
  if (added) entry->second = nlohmann::json::parse(golden_text(name));
  return entry->second;
}

using Ids = std::vector<int32_t>;

inline std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

// splitmix64: the same texts on every machine.
class TestRandom {
 public:
  explicit TestRandom(uint64_t seed) : state_(seed) {}
  uint64_t below(uint64_t n) {
    uint64_t x = state_ += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return (x ^ x >> 31) % n;
  }

 private:
  uint64_t state_;
};

}  // namespace dz::text
