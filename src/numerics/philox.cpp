#include "numerics/philox.h"

#include <vector>

#include "base/hash.h"
#include "numerics/functions64.h"

namespace dz::numerics {
namespace {

// Phi(-3) and Phi(3) - Phi(-3) of the standard normal distribution.
constexpr double kPhiMinus3 = 0x1.61de1f985b5d7p-10;
constexpr double kPhiSpan3 = 0x1.fe9e21e067a4ap-1;

PhiloxKey key_of(uint64_t seed, std::string_view name) {
  std::vector<std::byte> bytes;
  for (int shift = 0; shift < 64; shift += 8) bytes.push_back(static_cast<std::byte>(seed >> shift));
  for (const char c : name) bytes.push_back(static_cast<std::byte>(c));
  const uint64_t key = xxh3_64(bytes);
  return {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)};
}

}  // namespace

PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xd2511f53u} * counter[0];
    const uint64_t b = uint64_t{0xcd9e8d57u} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b), static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(a)};
    key[0] += 0x9e3779b9u;
    key[1] += 0xbb67ae85u;
  }
  return counter;
}

RandomStream::RandomStream(uint64_t seed, std::string_view name) : key_(key_of(seed, name)) {}

uint64_t RandomStream::bits(uint64_t index) const {
  const PhiloxCounter words = philox4x32({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), 0, 0}, key_);
  return uint64_t{words[1]} << 32 | words[0];
}

double RandomStream::uniform(uint64_t index) const { return (static_cast<double>(bits(index) >> 11) + 0.5) * 0x1p-53; }

float RandomStream::truncated_normal(uint64_t index, double std) const {
  return static_cast<float>(std * inverse_normal(kPhiMinus3 + uniform(index) * kPhiSpan3));
}

float RandomStream::normal(uint64_t index, double std) const { return static_cast<float>(std * inverse_normal(uniform(index))); }

void fill_truncated_normal(const RandomStream& stream, double std, uint64_t first_index, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) out[i] = stream.truncated_normal(first_index + i, std);
}

}  // namespace dz::numerics
