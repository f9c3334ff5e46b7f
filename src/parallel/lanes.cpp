#include "parallel/lanes.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"

namespace dz::parallel {
namespace {

// The instances of the lanes [span.begin, span.end): contiguous, because lanes are.
Span instances_of(int64_t instances, int64_t lanes, Span span) {
  return {lane_instances(instances, lanes, span.begin).begin, lane_instances(instances, lanes, span.end - 1).end};
}

void plan(int64_t instances, int64_t lanes, int64_t max_instances, Span range, Span node, std::vector<MicroBatch>& out) {
  if (node.end <= range.begin || node.begin >= range.end) return;
  const Span held = instances_of(instances, lanes, node);
  if (held.size() == 0) return;
  const bool inside = range.begin <= node.begin && node.end <= range.end;
  if (inside && held.size() <= max_instances) {
    out.push_back({.instances = held, .lanes = node});
  } else if (node.size() == 1) {
    for (int64_t begin = held.begin; begin < held.end; begin += max_instances) {
      const int64_t end = std::min(held.end, begin + max_instances);
      out.push_back({.instances = {begin, end}, .lanes = node, .first_part = begin == held.begin, .last_part = end == held.end});
    }
  } else {
    const int64_t middle = node.begin + node.size() / 2;
    plan(instances, lanes, max_instances, range, {node.begin, middle}, out);
    plan(instances, lanes, max_instances, range, {middle, node.end}, out);
  }
}

}  // namespace

Span lane_instances(int64_t instances, int64_t lanes, int64_t lane) {
  DZ_CHECK(lane >= 0 && lane < lanes, "lane", lane, "lanes", lanes);
  return {lane * instances / lanes, (lane + 1) * instances / lanes};
}

std::vector<MicroBatch> plan_micro_batches(int64_t instances, int64_t lanes, int64_t max_instances, Span range) {
  DZ_CHECK(lanes > 0 && std::has_single_bit(static_cast<uint64_t>(lanes)), "lanes", lanes);
  DZ_CHECK(max_instances >= 1, "max_instances", max_instances);
  std::vector<MicroBatch> pieces;
  plan(instances, lanes, max_instances, range, {0, lanes}, pieces);
  return pieces;
}

int Slots::take() {
  const auto free = std::ranges::find(taken_, false);
  const auto slot = static_cast<int>(free - taken_.begin());
  if (free == taken_.end()) {
    taken_.push_back(true);
  } else {
    *free = true;
  }
  return slot;
}

LaneTree::LaneTree(int64_t instances, int64_t lanes, Span top, std::function<void(int a, int b)> merge)
    : instances_(instances), lanes_(lanes), top_(top), merge_(std::move(merge)) {
  DZ_CHECK(top.size() >= 1 && std::has_single_bit(static_cast<uint64_t>(top.size())) && top.begin % top.size() == 0, "top.begin", top.begin,
           "top.end", top.end);
}

bool LaneTree::is_empty(Span lanes) const { return instances_of(instances_, lanes_, lanes).size() == 0; }

void LaneTree::add(Span lanes, int slot) {
  DZ_CHECK(stack_.empty() || stack_.back().lanes.end <= lanes.begin, "lanes.begin", lanes.begin);
  stack_.push_back({lanes, slot});
  while (stack_.back().lanes.size() < top_.size()) {
    const Span top = stack_.back().lanes;
    const int64_t size = top.size();
    const bool is_left = top.begin / size % 2 == 0;
    const Span sibling = is_left ? Span{top.end, top.end + size} : Span{top.begin - size, top.begin};
    const Span parent{std::min(top.begin, sibling.begin), std::max(top.end, sibling.end)};
    if (is_empty(sibling)) {
      stack_.back().lanes = parent;
    } else if (is_left) {
      return;  // the sibling is still to come
    } else {
      DZ_CHECK(stack_.size() >= 2 && stack_[stack_.size() - 2].lanes == sibling, "missing lanes from", sibling.begin);
      const int right = stack_.back().slot;
      stack_.pop_back();
      merge_(stack_.back().slot, right);
      stack_.back().lanes = parent;
    }
  }
}

int LaneTree::root() const {
  DZ_CHECK(stack_.size() == 1 && stack_.back().lanes == top_, "nodes", stack_.size());
  return stack_.back().slot;
}

}  // namespace dz::parallel
