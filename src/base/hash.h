// Hashes: SHA-256 for files (what other tools can check), XXH3 for state digests and random keys.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace dz {

struct Digest128 {
  uint64_t high = 0;
  uint64_t low = 0;
  friend bool operator==(const Digest128&, const Digest128&) = default;
  std::string hex() const;  // 32 digits, high word first
};

Digest128 xxh3_128(std::span<const std::byte> bytes);
uint64_t xxh3_64(std::span<const std::byte> bytes, uint64_t seed = 0);

// Incremental SHA-256; hex() ends it.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void update(std::span<const std::byte> bytes);
  void update(std::string_view text) { update(std::as_bytes(std::span(text.data(), text.size()))); }
  std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(std::string_view bytes);

}  // namespace dz
