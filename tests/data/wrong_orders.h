// Orders with the faults of MaxText's olmo_grain pipeline, for tests that must notice them. Nothing of this is in the product.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/order.h"

namespace dz::test {

// Both the sampler and Grain cut the records by host: host h of N reads every N-th record of its own block, so that its walk over one epoch
// goes through N permutations.
class DoubleShardedOrder final : public data::Order {
 public:
  // `right` is a maxtext order without workers.
  explicit DoubleShardedOrder(std::shared_ptr<const data::Order> right) : Order(right->settings()), right_(std::move(right)) {}

  std::vector<int64_t> batch(int64_t step) const override {
    const int64_t hosts = settings().hosts, host_batch = settings().batch / hosts, block = instances() / hosts;
    std::vector<int64_t> ids;
    for (int64_t host = 0; host < hosts; ++host) {
      for (int64_t slot = 0; slot < host_batch; ++slot) {
        const int64_t record = ((step - 1) * host_batch + slot) * hosts + host;
        int64_t id = 0;
        right_->epoch_order(settings().first_epoch + record / block, host * block + record % block, std::span(&id, 1));
        ids.push_back(id);
      }
    }
    return ids;
  }
  int64_t epoch(int64_t step) const override { return right_->epoch(step); }
  int64_t position(int64_t step) const override { return right_->position(step); }
  int64_t batch_size(int64_t step) const override { return right_->batch_size(step); }
  void epoch_order(int64_t epoch, int64_t begin, std::span<int64_t> out) const override { right_->epoch_order(epoch, begin, out); }

 private:
  std::shared_ptr<const data::Order> right_;
};

// A run saved after step `saved` and resumed with the batch that it had read last: from then on it is one batch behind.
class OffByOneOrder final : public data::Order {
 public:
  OffByOneOrder(std::shared_ptr<const data::Order> right, int64_t saved) : Order(right->settings()), right_(std::move(right)), saved_(saved) {}

  std::vector<int64_t> batch(int64_t step) const override { return right_->batch(read_at(step)); }
  int64_t epoch(int64_t step) const override { return right_->epoch(read_at(step)); }
  int64_t position(int64_t step) const override { return right_->position(read_at(step)); }
  int64_t batch_size(int64_t step) const override { return right_->batch_size(step); }
  void epoch_order(int64_t epoch, int64_t begin, std::span<int64_t> out) const override { right_->epoch_order(epoch, begin, out); }

 private:
  int64_t read_at(int64_t step) const { return step > saved_ ? step - 1 : step; }

  std::shared_ptr<const data::Order> right_;
  int64_t saved_;
};

}  // namespace dz::test
