#include "data/skipped_order.h"

#include "base/check.h"

namespace dz::data {
namespace {

class SkippedOrder : public Order {
 public:
  SkippedOrder(std::shared_ptr<const Order> order, int64_t batches) : Order(order->settings()), order_(std::move(order)), batches_(batches) {}
  std::vector<int64_t> batch(int64_t step) const override { return order_->batch(step + batches_); }
  int64_t epoch(int64_t step) const override { return order_->epoch(step + batches_); }
  int64_t position(int64_t step) const override { return order_->position(step + batches_); }
  int64_t batch_size(int64_t step) const override { return order_->batch_size(step + batches_); }
  void epoch_order(int64_t epoch, int64_t begin, std::span<int64_t> out) const override { order_->epoch_order(epoch, begin, out); }

 private:
  std::shared_ptr<const Order> order_;
  int64_t batches_;
};

}  // namespace

std::shared_ptr<const Order> skip_batches(std::shared_ptr<const Order> order, int64_t batches) {
  DZ_CHECK(batches >= 0, "batches", batches);
  if (batches == 0) return order;
  return std::make_shared<SkippedOrder>(std::move(order), batches);
}

}  // namespace dz::data
