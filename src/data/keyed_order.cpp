// The keyed order: no array, so a run over 10^12 instances starts anywhere at once.
#include <algorithm>

#include "base/check.h"
#include "data/keyed_permutation.h"
#include "data/order_dialects.h"

namespace dz::data {
namespace {

class KeyedOrder final : public Order {
 public:
  KeyedOrder(const OrderSettings& settings, std::vector<BatchStage> stages) : Order(settings), stages_(std::move(stages)) {
    const std::vector<uint32_t>& words = settings.seed.words();
    seed_ = words[0] | (words.size() > 1 ? uint64_t{words[1]} << 32 : 0);
    int64_t position = 0;
    if (__builtin_mul_overflow(settings.first_epoch, settings.instances, &position)) refuse();
    for (size_t i = 0; i < stages_.size(); ++i) {
      starts_.push_back(position);
      if (i + 1 < stages_.size()) position = after(position, stages_[i + 1].from_step - stages_[i].from_step, stages_[i].batch);
    }
  }

  std::vector<int64_t> batch(int64_t step) const override {
    const int64_t first = first_position(step);
    std::vector<int64_t> ids(static_cast<size_t>(batch_size(step)));
    const std::span<int64_t> out(ids);
    for (int64_t done = 0; done < static_cast<int64_t>(ids.size());) {
      const int64_t at = (first + done) % instances(), count = std::min(static_cast<int64_t>(ids.size()) - done, instances() - at);
      epoch_order((first + done) / instances(), at, out.subspan(static_cast<size_t>(done), static_cast<size_t>(count)));
      done += count;
    }
    return ids;
  }

  int64_t epoch(int64_t step) const override { return first_position(step) / instances(); }
  int64_t position(int64_t step) const override { return first_position(step) % instances(); }
  int64_t batch_size(int64_t step) const override { return stages_[stage_of(stages_, step)].batch; }

  void epoch_order(int64_t epoch, int64_t begin, std::span<int64_t> out) const override {
    const int64_t chunk = settings().chunk;
    const KeyedPermutation permutation(instances() / chunk, seed_, epoch);
    for (int64_t& id : out) {
      id = settings().shuffle ? permutation(begin / chunk) * chunk + begin % chunk : begin;
      ++begin;
    }
  }

 private:
  [[noreturn]] static void refuse() { refuse_order("step", "a position of 2^63 instances and more", "a step that a run can reach"); }

  static int64_t after(int64_t position, int64_t steps, int64_t batch) {
    int64_t passed = 0, result = 0;
    if (__builtin_mul_overflow(steps, batch, &passed) || __builtin_add_overflow(position, passed, &result)) refuse();
    return result;
  }

  // Of the first instance of the step, counted over all epochs; the step's last one is checked to have one too.
  int64_t first_position(int64_t step) const {
    const size_t i = stage_of(stages_, step);
    const int64_t first = after(starts_[i], step - stages_[i].from_step, stages_[i].batch);
    after(first, 1, stages_[i].batch);
    return first;
  }

  std::vector<BatchStage> stages_;
  std::vector<int64_t> starts_;  // position at which each stage begins
  uint64_t seed_ = 0;
};

}  // namespace

std::shared_ptr<const Order> make_keyed_order(const OrderSettings& settings, std::vector<BatchStage> stages) {
  return std::make_shared<KeyedOrder>(settings, std::move(stages));
}

}  // namespace dz::data
