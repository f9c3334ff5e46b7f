// Token directories of any contents, also such as the writer would not make (no EOS at the end, ids out of range).
#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "data/temporary.h"
#include "data/token_shards.h"

namespace dz::test {

struct RawSource {
  std::string name;
  std::vector<uint32_t> tokens;
};

inline void write_raw(const std::filesystem::path& directory, int64_t vocab_size, int64_t eos_id, const std::vector<RawSource>& sources) {
  std::filesystem::create_directories(directory);
  data::TokenManifest manifest{
      .vocab_size = vocab_size, .eos_id = eos_id, .type = data::token_type_for(vocab_size), .tokenizer_sha256 = "", .sources = {}};
  const auto width = static_cast<size_t>(data::size_of(manifest.type));
  for (const RawSource& source : sources) {
    std::string bytes(source.tokens.size() * width, '\0');
    for (size_t i = 0; i < source.tokens.size(); ++i) std::memcpy(bytes.data() + i * width, &source.tokens[i], width);
    spill(directory / (source.name + ".bin"), bytes);
    const auto count = static_cast<int64_t>(source.tokens.size());
    manifest.sources.push_back({.name = source.name, .splits = {}});
    data::Stream& stream = manifest.sources.back().stream(data::Split::kTrain);
    stream.files.push_back({.path = source.name + ".bin", .tokens = count, .sha256 = sha256_hex(bytes)});
    stream.tokens = count;
  }
  spill(directory / "manifest.json", data::to_json(manifest));
}

// Counting shards: the token says its place, 1000 * shard + offset, shards numbered from 1; `copies` of 40, 33, 17 and 5 tokens.
inline std::vector<RawSource> counting_shards(int copies) {
  std::vector<RawSource> sources;
  for (int i = 0; i < 4 * copies; ++i) {
    constexpr uint32_t kTokens[] = {40, 33, 17, 5};
    RawSource source{.name = "shard" + std::to_string(i + 1), .tokens = {}};
    for (uint32_t offset = 0; offset < kTokens[i % 4]; ++offset) source.tokens.push_back(1000 * static_cast<uint32_t>(i + 1) + offset);
    sources.push_back(std::move(source));
  }
  return sources;
}

inline constexpr int64_t kCountingVocab = 49152;

}  // namespace dz::test
