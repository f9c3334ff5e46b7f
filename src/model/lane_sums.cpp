#include "model/lane_sums.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/state.h"

namespace dz::model {

void LaneSums::begin(const LaneGroup& group, int64_t instances) {
  const parallel::MicroBatch& micro = group.micro;
  DZ_CHECK(micro.instances.size() == instances && instances > 0, "micro-batch", micro.instances.size(), "batch", instances);
  DZ_CHECK(micro.lanes.size() >= 1 && micro.lanes.begin % micro.lanes.size() == 0, "first lane", micro.lanes.begin, "lanes", micro.lanes.size());
  group_ = group;
  lanes_.clear();
  if (micro.lanes.size() == 1) {
    lanes_.push_back({micro.lanes, {0, instances}});
    return;
  }
  int64_t covered = 0;
  for (int64_t lane = micro.lanes.begin; lane < micro.lanes.end; ++lane) {
    const parallel::Span held = parallel::lane_instances(group.instances, group.lanes, lane);
    if (held.size() == 0) continue;
    lanes_.push_back({{lane, lane + 1}, {held.begin - micro.instances.begin, held.end - micro.instances.begin}});
    DZ_CHECK(lanes_.back().instances.begin == covered, "lane", lane, "begins at", lanes_.back().instances.begin);
    covered = lanes_.back().instances.end;
  }
  DZ_CHECK(covered == instances, "instances in lanes", covered, "instances", instances);
}

float* LaneSums::buffer(int slot, std::span<float> gradient) {
  if (slot == 0) return gradient.data();
  if (static_cast<size_t>(slot) >= slots_.size()) slots_.resize(static_cast<size_t>(slot) + 1);
  LargeVector<float>& memory = slots_[static_cast<size_t>(slot)];
  if (memory.size() < gradient.size()) memory.resize(gradient.size());
  return memory.data();
}

void LaneSums::sum(std::span<float> gradient, const Part& part) {
  if (group_.micro.lanes.size() == 1) return part(lanes_[0].instances, gradient.data(), group_.micro.first_part);
  parallel::Slots free;
  // The nodes that a lane completes, innermost first: all of them are added in one reading of their buffers.
  int left = 0;
  std::vector<const float*> right;
  const auto merge = [&](int a, int b) {
    left = a;
    right.insert(right.begin(), buffer(b, gradient));
    free.give_back(b);
  };
  parallel::LaneTree tree(group_.instances, group_.lanes, group_.micro.lanes, merge);
  for (const Lane& lane : lanes_) {
    // The first lane takes slot 0 and, being the lowest, is the left side of every merge: the root is in `gradient`.
    const int slot = free.take();
    part(lane.instances, buffer(slot, gradient), true);
    right.clear();
    tree.add(lane.lanes, slot);
    if (right.empty()) continue;
    kernels::add({.count = static_cast<int64_t>(gradient.size()), .a = buffer(left, gradient), .b = right[0], .more = std::span(right).subspan(1)},
                 pool_);
  }
  DZ_CHECK(tree.root() == 0, "root", tree.root());
}

void LaneSums::sum_adding(std::span<float> gradient, const Adding& part) {
  sum(gradient, [&](parallel::Span instances, float* sum, bool fresh) {
    if (fresh) std::fill_n(sum, gradient.size(), 0.0f);
    part(instances, sum);
  });
}

}  // namespace dz::model
