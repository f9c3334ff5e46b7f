#include "base/hash.h"

#include <openssl/evp.h>
#include <xxhash.h>

#include <cstdio>

#include "base/check.h"

namespace dz {

std::string Digest128::hex() const {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(high), static_cast<unsigned long long>(low));
  return text;
}

Digest128 xxh3_128(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

uint64_t xxh3_64(std::span<const std::byte> bytes, uint64_t seed) { return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed); }

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) { DZ_CHECK(state_->context && EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1); }

Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::byte> bytes) { DZ_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1); }

std::string Sha256::hex() {
  std::array<unsigned char, 32> digest;
  unsigned size = 0;
  DZ_CHECK(EVP_DigestFinal_ex(state_->context, digest.data(), &size) == 1 && size == digest.size());
  std::string text;
  for (const unsigned char byte : digest) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

}  // namespace dz
