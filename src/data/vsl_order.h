// In which order instances of varied lengths are seen: batches of one length each, in an order that a curriculum makes (OLMo-core:
// data/data_loader.py NumpyVSLDataLoader and the VSLCurriculum classes of data/numpy_dataset.py, version 2.4.0, as with num_threads = 0).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/big_seed.h"
#include "data/dataset.h"
#include "data/order.h"

namespace dz::data {

enum class CurriculumKind : uint8_t {
  kNatural,     // batches of all lengths mixed
  kGrowP2,      // cycles in which long instances become more likely, by powers of two
  kGrowLinear,  // the same, linearly
};
std::string_view name_of(CurriculumKind kind);                                     // "natural", "grow-p2", "grow-linear"
CurriculumKind parse_curriculum(std::string_view name, const std::string& where);  // ConfigError listing the names

struct VslCurriculum {
  CurriculumKind kind = CurriculumKind::kNatural;
  int64_t cycles = 8;     // of the growing ones
  bool balanced = false;  // as many batches of each length as of the rarest
};
std::string python_repr(const VslCurriculum& curriculum);     // as its dataclass prints, for the fingerprint
std::string olmo_core_name(const VslCurriculum& curriculum);  // "vsl-natural", "vsl-grow-p2-8-cycle-balanced": as in loader states

// Instances of one length, and how many whole batches an epoch makes of them.
struct LengthBucket {
  int64_t length = 0, instances = 0, batches = 0;
};

// Of the lengths min_length, 2 min_length ... max_length, with batches of batch_tokens / length instances.
std::vector<LengthBucket> length_buckets(const Dataset& dataset, int64_t min_length, int64_t batch_tokens, const VslCurriculum& curriculum);

// The batches of an epoch in order. Batch b of the result is one of the bucket whose range of numbers it lies in: buckets are numbered through
// by ascending length. The first batch is of the longest instances, so that memory runs out at once or never. ConfigError: no batch of the
// longest instances (natural), or a number of batches that the curriculum cannot deal out (OLMo-core fails on an assertion).
std::vector<uint32_t> curriculum_order(std::span<const LengthBucket> buckets, const VslCurriculum& curriculum, const BigSeed& seed);

struct VslOrderSettings {
  int64_t min_length = 0;
  int64_t batch_tokens = 0;  // of all ranks together; at least the longest instance
  BigSeed seed;
  bool shuffle = true;  // false: no curriculum either
  VslCurriculum curriculum;
};
// Epochs from 1; an epoch ends after its whole batches. 8 bytes an instance. The order is of vsl_dataset(...) with the same lengths.
std::shared_ptr<const Order> vsl_order(const Dataset& dataset, const VslOrderSettings& settings);

// The part of a batch of varied lengths that a rank reads: OLMo-core slices these in a row, unlike those of fixed length (rank_slice). When
// ranks do not divide the batch, the last instances are no rank's.
std::vector<int64_t> contiguous_slice(std::span<const int64_t> batch, int64_t rank, int64_t ranks);

// n things in b shares, the first ones larger by one (OLMo-core: data/utils.py divide_into_buckets).
std::vector<int64_t> divide_into_shares(int64_t things, int64_t shares);

}  // namespace dz::data
