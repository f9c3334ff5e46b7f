// The recorded numbers under tests/golden/data, and the forms that several of them share.
#pragma once

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/hash.h"

namespace dz::test {

inline nlohmann::json data_golden(const std::string& name) { return nlohmann::json::parse(std::ifstream(DZ_GOLDEN "/data/" + name)); }

// SHA-256 over the values as little-endian words of 32 or 64 bits.
template <class Word, class Values>
std::string sha256_of_words(const Values& values) {
  std::string bytes;
  for (const auto value : values) {
    for (size_t byte = 0; byte < sizeof(Word); ++byte) bytes.push_back(static_cast<char>(static_cast<uint64_t>(value) >> (8 * byte)));
  }
  return sha256_hex(bytes);
}

}  // namespace dz::test
