// Damaged packings of OLMo-core: what the check lets pass must be safe to read instances by. Input: three counts of u64 in one byte each, then the
// numbers of document-indices (pairs), documents-by-instance and instance-offsets (pairs).
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "data/packing_cache.h"
#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  std::array<std::vector<uint64_t>, 3> arrays;
  size_t at = 3;
  for (size_t i = 0; i < arrays.size(); ++i) {
    arrays[i].resize(i == 1 ? data[i] : size_t{2} * (data[i] / 2));
    for (uint64_t& value : arrays[i]) {
      const size_t count = at < size ? std::min(sizeof value, size - at) : 0;
      value = 0;
      std::memcpy(&value, data + std::min(at, size), count);
      at += count;
    }
  }
  constexpr int64_t kLength = 32, kFiles[] = {427, 329};
  const dz::data::GroupPacking packing(std::move(arrays));
  try {
    packing.check(kFiles, kLength, "fuzz");
  } catch (const dz::DataError&) {
    return 0;
  }
  ++dz::fuzz::accepted;
  for (int64_t i = 0; i < packing.instances(); ++i) {
    int64_t used = 0;
    for (const uint64_t document : packing.instance(i)) {
      const dz::data::DocumentRange range = packing.document(document);
      const bool in_one_file = range.end <= kFiles[0] || range.start >= kFiles[0];
      if (range.start < 0 || range.length() < 1 || range.end > kFiles[0] + kFiles[1] || !in_one_file) std::abort();
      used += range.length();
    }
    if (used > kLength) std::abort();
  }
  return 0;
}
