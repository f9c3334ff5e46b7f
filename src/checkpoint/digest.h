// The digest of a training state: what certificates, `inspect` and `verify` compare. It depends on names, shapes and values only,
// not on sharding, file layout, ranks or threads (docs/checkpoints.md has the exact rule).
//
//   block   = XXH3-128 over up to 4,096 consecutive f32, little-endian, every NaN counted as 0x7fc00000
//   tensor  = XXH3-128 over: length of the name (u32 LE), name, rank (u32 LE), dimensions (i64 LE), block digests (16 bytes LE: low word, high word)
//   digest  = XXH3-128 over the tensor digests (16 bytes LE) in byte order of names
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/tensor.h"
#include "base/thread_pool.h"

namespace dz::checkpoint {

inline constexpr int64_t kDigestBlock = 4096;  // elements; a shard boundary is a block boundary

// The digest of one block of 1 to kDigestBlock elements (fewer only at the end of a tensor).
Digest128 block_digest(std::span<const float> block);

// A tensor from the digests of all its blocks, wherever they were computed.
Digest128 tensor_digest(std::string_view name, const Shape& shape, std::span<const Digest128> blocks);

// The same for a tensor that passes by in pieces of any length.
class TensorDigester {
 public:
  void add(std::span<const float> values);
  Digest128 finish(std::string_view name, const Shape& shape);  // ends it

 private:
  std::vector<Digest128> blocks_;
  std::vector<float> rest_;  // fewer than a block
};

struct NamedDigest {
  std::string name;
  Digest128 digest;
  friend bool operator==(const NamedDigest&, const NamedDigest&) = default;
};

struct TensorsDigest {
  Digest128 total;
  std::vector<NamedDigest> tensors;  // in byte order of names
  friend bool operator==(const TensorsDigest&, const TensorsDigest&) = default;
};

// The digest of tensors given in byte order of names.
Digest128 combined_digest(std::span<const NamedDigest> tensors);

// f32 tensors in any order; names must differ. Any thread count gives the same digest.
TensorsDigest digest_tensors(std::span<const TensorView> tensors, ThreadPool& pool);

// The first NaN or infinity, in the order of the list.
struct NonFinite {
  std::string name;
  int64_t element;
  float value;
};
std::optional<NonFinite> find_non_finite(std::span<const TensorView> tensors, ThreadPool& pool);

// The trainer state: XXH3-128 over its canonical text, the bytes of trainer.json.
Digest128 digest_text(std::string_view text);

// What the certificate of a step holds.
struct StateDigests {
  TensorsDigest parameters;
  TensorsDigest moments;
  Digest128 trainer;
  friend bool operator==(const StateDigests&, const StateDigests&) = default;
};

// "exp_avg.NAME" and "exp_avg_sq.NAME": what the moments of tensor NAME are called in files and digests.
std::string exp_avg_name(std::string_view name);
std::string exp_avg_sq_name(std::string_view name);

}  // namespace dz::checkpoint
