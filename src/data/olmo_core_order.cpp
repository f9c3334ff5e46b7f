// OLMo-core's order of fixed-length instances (ai2-olmo-core 2.4.0, olmo_core/data/data_loader.py: NumpyFSLDataLoader): PCG64 of seed + epoch,
// epochs from 1, chunks, whole batches only, the rest of the permutation dropped at the end of each epoch.
#include <fmt/format.h>

#include "base/check.h"
#include "data/epoch_permutations.h"
#include "data/order_dialects.h"

namespace dz::data {
namespace {

class OlmoCoreOrder final : public Order {
 public:
  OlmoCoreOrder(const OrderSettings& settings, std::vector<BatchStage> stages)
      : Order(settings), stages_(std::move(stages)), permutations_(settings.instances / settings.chunk, [seed = settings.seed](int64_t epoch) {
          return seed.plus(static_cast<uint64_t>(epoch));
        }) {
    starts_.push_back({settings.first_epoch, 0});
    for (size_t i = 1; i < stages_.size(); ++i) starts_.push_back(start_of(i));
  }

  std::vector<int64_t> batch(int64_t step) const override {
    const Place place = place_of(step);
    const int64_t size = batch_size(step);
    std::vector<int64_t> ids(static_cast<size_t>(size));
    epoch_order(place.epoch, place.batches * size, ids);
    return ids;
  }

  int64_t epoch(int64_t step) const override { return place_of(step).epoch; }
  int64_t position(int64_t step) const override { return place_of(step).batches * batch_size(step); }
  int64_t batch_size(int64_t step) const override { return stages_[stage_of(stages_, step)].batch; }

  void epoch_order(int64_t epoch, int64_t begin, std::span<int64_t> out) const override {
    DZ_CHECK(begin >= 0 && begin + static_cast<int64_t>(out.size()) <= instances(), "begin", begin, "count", out.size());
    const int64_t chunk = settings().chunk;
    const EpochPermutations::Permutation permutation = settings().shuffle ? permutations_.of(epoch) : nullptr;
    for (int64_t& id : out) {
      id = permutation ? int64_t{(*permutation)[static_cast<size_t>(begin / chunk)]} * chunk + begin % chunk : begin;
      ++begin;
    }
  }

 private:
  // A batch of an epoch: after `batches` others of the same size.
  struct Place {
    int64_t epoch = 0, batches = 0;
  };

  Place place_of(int64_t step) const { return place_in(stage_of(stages_, step), step); }

  // May be the place after the last whole batch of an epoch when the stage ends before `step`.
  Place place_in(size_t stage, int64_t step) const {
    const int64_t an_epoch = instances() / stages_[stage].batch, steps = step - stages_[stage].from_step;
    const Place start = starts_[stage];
    const int64_t batches = start.batches + steps % an_epoch;
    return {start.epoch + steps / an_epoch + batches / an_epoch, batches % an_epoch};
  }

  // The data loader keeps its position in the epoch when its batch size changes, and counts the batches of the epoch anew in the new size.
  Place start_of(size_t stage) const {
    const int64_t step = stages_[stage].from_step, old_batch = stages_[stage - 1].batch, batch = stages_[stage].batch;
    const Place last = place_in(stage - 1, step - 1);
    const int64_t done = last.batches + 1;  // of the epoch, up to the change
    const bool over = done == instances() / old_batch;
    if (batch > old_batch ? batch % old_batch != 0 : old_batch % batch != 0) {
      refuse_order(fmt::format("batch from step {}", step), fmt::format("{} after {}", batch, old_batch),
                   "an integer multiple or divisor of the batch before", "as OLMo-core's data loader demands");
    }
    if (batch > old_batch && !over && done % (batch / old_batch) != 0) {
      refuse_order(fmt::format("batch from step {}", step), fmt::format("{} batches of {} done in epoch {}", done, old_batch, last.epoch),
                   fmt::format("a multiple of {}", batch / old_batch), "OLMo-core's data loader refuses the change here; choose another step");
    }
    const int64_t batches = done * old_batch / batch;
    if (batches * batch != done * old_batch || batches >= instances() / batch) return {last.epoch + 1, 0};
    return {last.epoch, batches};
  }

  std::vector<BatchStage> stages_;
  std::vector<Place> starts_;  // where each stage begins
  EpochPermutations permutations_;
};

}  // namespace

std::shared_ptr<const Order> make_olmo_core_order(const OrderSettings& settings, std::vector<BatchStage> stages) {
  return std::make_shared<OlmoCoreOrder>(settings, std::move(stages));
}

}  // namespace dz::data
