// In which order a run sees its instances, in three dialects (docs/data.md, "Order"): ours, OLMo-core's and MaxText's olmo_grain. The batch
// of a step is a pure function of (settings, step): a resume needs no other state, and ranks, workers and threads do not appear.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "data/big_seed.h"

namespace dz::data {

enum class Dialect { kKeyed, kOlmoCore, kMaxText };

std::string_view name_of(Dialect dialect);     // "keyed", "olmo-core", "maxtext"
Dialect dialect_named(std::string_view name);  // ConfigError listing the three
constexpr int64_t first_epoch_of(Dialect dialect) { return dialect == Dialect::kOlmoCore ? 1 : 0; }

// From step `from_step` on a step takes `batch` instances: batch-size warm-up.
struct BatchStage {
  int64_t from_step = 1;
  int64_t batch = 0;
};

struct OrderSettings {
  Dialect dialect = Dialect::kKeyed;
  int64_t instances = 0;  // of the data set; olmo-core and maxtext: below 2^32 - 1
  int64_t batch = 0;      // instances a step, of all ranks or hosts together
  BigSeed seed;           // keyed: below 2^64
  bool shuffle = true;
  // keyed, olmo-core: this many instances in a row stay together. OLMo-core: max_target_sequence_length / sequence_length, so that the token
  // stream does not depend on the sequence length.
  int64_t chunk = 1;
  // maxtext: the hosts and the Grain workers a host of the run that is followed. Both shape its batches; neither says anything about the
  // machines used here.
  int64_t hosts = 1, workers = 0;
  // By from_step, ascending; `batch` holds before the first. Not for maxtext. olmo-core takes the changes that its data loader takes: by an
  // integer factor, and upward only after a multiple of the factor in batches of the epoch.
  std::vector<BatchStage> stages;
  int64_t first_epoch = 0;  // of step 1; 0: the dialect's first, which is 1 for olmo-core and 0 for the others
};

class Order {
 public:
  virtual ~Order() = default;

  // The instances of `step` (from 1 on), without reading those of earlier steps. Thread safe.
  virtual std::vector<int64_t> batch(int64_t step) const = 0;
  virtual int64_t epoch(int64_t step) const = 0;     // of the first instance of the step
  virtual int64_t position(int64_t step) const = 0;  // of that instance in its epoch; maxtext: in its host's part
  virtual int64_t batch_size(int64_t step) const = 0;

  // The order of an epoch: instances at positions [begin, begin + out.size()) of its permutation, those that no batch takes included.
  virtual void epoch_order(int64_t epoch, int64_t begin, std::span<int64_t> out) const = 0;

  const OrderSettings& settings() const { return settings_; }
  int64_t instances() const { return settings_.instances; }

 protected:
  explicit Order(const OrderSettings& settings) : settings_(settings) {}

 private:
  OrderSettings settings_;
};

// ConfigError for settings that give no order; the numbers are in the message.
std::shared_ptr<const Order> make_order(const OrderSettings& settings);

// The part of a batch that a rank reads: rank, rank + ranks, rank + 2 ranks ... 0 <= rank < ranks.
std::vector<int64_t> rank_slice(std::span<const int64_t> batch, int64_t rank, int64_t ranks);

// The part of a maxtext batch that was one host's: the batch is the hosts' batches, host by host.
std::vector<int64_t> host_slice(std::span<const int64_t> batch, int64_t host, int64_t hosts);

}  // namespace dz::data
