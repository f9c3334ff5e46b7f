#include "model/lane_sums.h"

#include <algorithm>

#include "base/check.h"
#include "base/thread_pool.h"
#include "kernels/rows.h"
#include "kernels/state.h"

namespace dz::model {

void LaneSums::begin(const LaneGroup& group, int64_t instances, const GradientNodes& nodes) {
  const parallel::MicroBatch& micro = group.micro;
  DZ_CHECK(micro.instances.size() == instances && instances > 0, "micro-batch", micro.instances.size(), "batch", instances);
  DZ_CHECK(nodes.own != nullptr || (!nodes.left.empty() && micro.first_part && micro.last_part), "nodes to the left", nodes.left.size());
  DZ_CHECK(nodes.left.empty() || micro.last_part, "nodes to the left", nodes.left.size());
  group_ = group;
  nodes_ = nodes;
}

LaneSums::Target LaneSums::target_of(size_t tensor) {
  Target target;
  if (nodes_.own != nullptr) target.own = nodes_.own->tensor(tensor).data();
  for (Parameters* node : nodes_.left) target.left.push_back(node->tensor(tensor).data());
  target.count = target.room = shape().tensor(tensor).size();
  return target;
}

float* LaneSums::memory_of(const Target& target, int slot) {
  const int buffer = buffer_of(target.own != nullptr, slot);
  if (buffer < 0) return target.own;
  const auto index = static_cast<size_t>(buffer);
  if (index >= buffers_.size()) buffers_.resize(index + 1);
  if (buffers_[index].size() < target.room) buffers_[index].resize(target.room);
  return buffers_[index].data();
}

void LaneSums::join(std::span<float* const> nodes, const float* value, size_t count) {
  if (nodes.empty()) return;
  std::vector<const float*> right(nodes.rbegin() + 1, nodes.rend());
  right.push_back(value);
  kernels::add({.count = static_cast<int64_t>(count),
                .a = nodes.back(),
                .b = right[0],
                .more = right.data() + 1,
                .more_count = static_cast<int64_t>(right.size()) - 1},
               pool_);
}

void LaneSums::clear(std::span<float> values) {
  constexpr int64_t kGrain = int64_t{1} << 16;
  pool_.parallel_ranges(static_cast<int64_t>(values.size()), kGrain,
                        [&](int64_t begin, int64_t end) { std::fill(values.begin() + begin, values.begin() + end, 0.0f); });
}

void LaneSums::sum(size_t tensor, const Part& part, int64_t most_joined) { sum(target_of(tensor), part, most_joined); }

void LaneSums::sum(const Target& target, const Part& part, int64_t most_joined) {
  const bool has_own = target.own != nullptr;
  if (has_own && group_.micro.lanes.size() == 1) {
    part({0, group_.micro.instances.size()}, target.own, group_.micro.first_part ? Into::kFresh : Into::kContinue);
  } else {
    for (const LaneStep& step : lane_steps(group_, has_own, most_joined)) {
      std::vector<float*> nodes;
      for (const int slot : step.nodes) nodes.push_back(memory_of(target, slot));
      if (step.last && !has_own) nodes.insert(nodes.end(), target.left.begin(), target.left.end());
      float* const value = step.joins ? nodes[0] : memory_of(target, step.slot);
      part(step.instances, value, step.joins ? Into::kJoin : Into::kFresh);
      join(std::span(nodes).subspan(step.joins ? 1 : 0), value, target.count);
    }
  }
  if (has_own) join(target.left, target.own, target.count);
}

void LaneSums::sum_adding(size_t tensor, const Adding& part) {
  const Target target = target_of(tensor);
  const Part adding = [&](parallel::Span instances, float* to, Into into) {
    if (into == Into::kFresh) clear({to, target.count});
    part(instances, to);
  };
  sum(target, adding, 0);
}

void LaneSums::sum_rows(size_t tensor, std::span<const int32_t> tokens, int64_t width, const AddingRows& add) {
  const Target target = target_of(tensor);
  const bool has_own = target.own != nullptr;
  if (has_own && group_.micro.lanes.size() == 1) {
    sum_adding(tensor, [&](parallel::Span instances, float* to) { add(instances, tokens.data(), to); });
    return;
  }
  // The rows of `tokens`, ascending, and which of them each token's is.
  std::vector<int32_t> rows(tokens.begin(), tokens.end()), row_of(tokens.size());
  std::ranges::sort(rows);
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  for (size_t i = 0; i < tokens.size(); ++i) row_of[i] = static_cast<int32_t>(std::ranges::lower_bound(rows, tokens[i]) - rows.begin());
  // Room for as many rows as there are tokens: what is needed does not depend on the text.
  const size_t room = tokens.size() * static_cast<size_t>(width), used = rows.size() * static_cast<size_t>(width);
  if (rows_.size() < room) rows_.resize(room);
  const Part adding = [&](parallel::Span instances, float* to, Into into) {
    if (into == Into::kFresh) clear({to, used});
    add(instances, row_of.data(), to);
  };
  sum({.own = rows_.data(), .left = {}, .count = used, .room = room}, adding, 0);
  // No sum that began at +0 is -0, so a row that a lane does not touch needs no addition of its +0.
  if (has_own) clear({target.own, target.count});
  float* const to = has_own ? target.own : target.left[0];
  kernels::embedding_grad<float>({.rows = static_cast<int64_t>(rows.size()), .width = width, .tokens = rows.data(), .dy = rows_.data(), .grad = to},
                                 pool_);
  join(std::span(target.left).subspan(has_own ? 0 : 1), to, target.count);
}

int64_t LaneSums::bytes() const {
  size_t floats = rows_.size();
  for (const LargeVector<float>& buffer : buffers_) floats += buffer.size();
  return static_cast<int64_t>(floats * sizeof(float));
}

}  // namespace dz::model
