// The order of MaxText's olmo_grain pipeline (maxtext 0.2.5, olmo_data_grain.py: OlmoIndexSampler; Grain 0.2.18, DataLoader) with its double
// sharding and its resume of one batch too few put right: each host walks its own block of each epoch's permutation.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "base/check.h"
#include "base/hash.h"
#include "data/epoch_permutations.h"
#include "data/order_dialects.h"

namespace dz::data {
namespace {

// The first eight bytes, as a little-endian number, of SHA-256 over "olmo-shuffle:{seed}:{epoch}".
BigSeed epoch_seed(const BigSeed& seed, int64_t epoch) {
  const std::string hex = sha256_hex(fmt::format("olmo-shuffle:{}:{}", seed.decimal(), epoch));
  uint64_t value = 0;
  for (int byte = 7; byte >= 0; --byte) value = (value << 8) | std::stoull(hex.substr(static_cast<size_t>(2 * byte), 2), nullptr, 16);
  return value;
}

class MaxTextOrder final : public Order {
 public:
  explicit MaxTextOrder(const OrderSettings& settings)
      : Order(settings),
        host_batch_(settings.batch / settings.hosts),
        block_(settings.instances / settings.hosts),
        permutations_(settings.instances, [seed = settings.seed](int64_t epoch) { return epoch_seed(seed, epoch); }) {}

  std::vector<int64_t> batch(int64_t step) const override {
    std::vector<int64_t> ids(static_cast<size_t>(settings().batch));
    int64_t loaded = -1;
    EpochPermutations::Permutation permutation;
    for (int64_t slot = 0; slot < host_batch_; ++slot) {
      const int64_t record = record_of(step, slot), epoch = settings().first_epoch + record / block_;
      if (epoch != loaded && settings().shuffle) permutation = permutations_.of(epoch);
      loaded = epoch;
      for (int64_t host = 0; host < settings().hosts; ++host)
        ids[static_cast<size_t>(host * host_batch_ + slot)] = item(permutation, host * block_ + record % block_);
    }
    return ids;
  }

  int64_t epoch(int64_t step) const override { return settings().first_epoch + record_of(step, 0) / block_; }
  int64_t position(int64_t step) const override { return record_of(step, 0) % block_; }
  int64_t batch_size(int64_t) const override { return settings().batch; }

  void epoch_order(int64_t epoch, int64_t begin, std::span<int64_t> out) const override {
    DZ_CHECK(begin >= 0 && begin + static_cast<int64_t>(out.size()) <= instances(), "begin", begin, "count", out.size());
    const EpochPermutations::Permutation permutation = settings().shuffle ? permutations_.of(epoch) : nullptr;
    for (int64_t& id : out) id = item(permutation, begin++);
  }

 private:
  static int64_t item(const EpochPermutations::Permutation& permutation, int64_t at) {
    return permutation ? int64_t{(*permutation)[static_cast<size_t>(at)]} : at;
  }

  // Which record of a host's endless stream is in a slot of its batch: a Grain worker makes whole batches of every W-th record, and the
  // workers' batches come in turn.
  int64_t record_of(int64_t step, int64_t slot) const {
    check_step(step);
    const int64_t workers = std::max<int64_t>(settings().workers, 1), batch = step - 1;
    int64_t round = 0, record = 0;
    if (__builtin_mul_overflow(batch / workers, host_batch_, &round) || __builtin_mul_overflow(round + slot, workers, &record) ||
        __builtin_add_overflow(record, batch % workers, &record) || record > int64_t{1} << 62)
      refuse_order("step", std::to_string(step), "a step that a run can reach");
    return record;
  }

  int64_t host_batch_, block_;  // instances of a host: a step, an epoch
  EpochPermutations permutations_;
};

}  // namespace

std::shared_ptr<const Order> make_maxtext_order(const OrderSettings& settings) { return std::make_shared<MaxTextOrder>(settings); }

}  // namespace dz::data
