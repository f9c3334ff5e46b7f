#include "model/lane_plan.h"

#include <algorithm>

#include "base/check.h"
#include "model/workspace.h"

namespace dz::model {
namespace {

struct Lane {
  parallel::Span lanes, instances;
};

// The non-empty ones; a micro-batch inside a lane is one.
std::vector<Lane> lanes_of(const LaneGroup& group) {
  const parallel::MicroBatch& micro = group.micro;
  DZ_CHECK(micro.lanes.size() >= 1 && micro.lanes.begin % micro.lanes.size() == 0, "first lane", micro.lanes.begin, "lanes", micro.lanes.size());
  if (micro.lanes.size() == 1) return {{micro.lanes, {0, micro.instances.size()}}};
  std::vector<Lane> lanes;
  int64_t covered = 0;
  for (int64_t lane = micro.lanes.begin; lane < micro.lanes.end; ++lane) {
    const parallel::Span held = parallel::lane_instances(group.instances, group.lanes, lane);
    if (held.size() == 0) continue;
    lanes.push_back({{lane, lane + 1}, {held.begin - micro.instances.begin, held.end - micro.instances.begin}});
    DZ_CHECK(lanes.back().instances.begin == covered, "lane", lane, "begins at", lanes.back().instances.begin);
    covered = lanes.back().instances.end;
  }
  DZ_CHECK(covered == micro.instances.size(), "instances in lanes", covered, "instances", micro.instances.size());
  return lanes;
}

// Elements of the largest tensor that is summed in a way.
struct Largest {
  int64_t matrix = 0, vector = 0;
};

Largest largest_tensors(const ModelConfig& config) {
  Largest largest;
  for (const ParameterSpec& spec : parameter_specs(config)) {
    if (spec.name == "model.embed_tokens.weight" || spec.name == "lm_head.weight") continue;
    int64_t& most = spec.shape.size() == 2 ? largest.matrix : largest.vector;
    most = std::max(most, element_count(spec.shape));
  }
  return largest;
}

}  // namespace

std::vector<LaneStep> lane_steps(const LaneGroup& group, bool has_own, int64_t most_joined) {
  std::vector<LaneStep> steps;
  parallel::Slots free;
  const auto merge = [&](int a, int b) {
    steps.back().nodes.push_back(a);
    free.give_back(b);
  };
  parallel::LaneTree tree(group.instances, group.lanes, group.micro.lanes, merge);
  const std::vector<Lane> lanes = lanes_of(group);
  for (const Lane& lane : lanes) {
    // Which nodes it completes is known before it is computed. The first lane takes slot 0, which is the left side of every merge.
    steps.push_back({.instances = lane.instances, .slot = free.take(), .joins = false, .last = &lane == &lanes.back(), .nodes = {}});
    LaneStep& step = steps.back();
    tree.add(lane.lanes, step.slot);
    const bool completes = !step.nodes.empty() || (step.last && !has_own);
    step.joins = completes && lane.instances.size() <= most_joined;
  }
  DZ_CHECK(tree.root() == 0, "root", tree.root());
  return steps;
}

std::vector<PlannedMicroBatch> plan_step(int64_t instances, int64_t lanes, parallel::Span range, const std::vector<parallel::MicroBatch>& pieces) {
  std::vector<PlannedMicroBatch> plan;
  parallel::Slots free;
  const auto merge = [&](int a, int b) {
    plan.back().left.push_back(a);
    free.give_back(b);
  };
  parallel::LaneTree tree(instances, lanes, range, merge);
  int slot = -1;
  for (const parallel::MicroBatch& micro : pieces) {
    if (micro.first_part) slot = free.take();
    plan.push_back({.micro = micro, .slot = slot, .has_own = true, .left = {}});
    if (micro.last_part) tree.add(micro.lanes, slot);
    plan.back().has_own = plan.back().left.empty() || !micro.first_part || !micro.last_part;
  }
  DZ_CHECK(tree.root() == plan.back().root(), "root", tree.root());
  return plan;
}

int64_t lane_buffer_bytes(const ModelConfig& config, const Limits& limits, int64_t instances, int64_t lanes,
                          const std::vector<PlannedMicroBatch>& plan) {
  const Largest largest = largest_tensors(config);
  const int64_t by_head = most_joined_by_head(head_chunk_rows(limits.head_chunk_rows, config.vocab_size, limits.seq), limits.seq);
  int64_t rows = 0;
  std::vector<int64_t> buffers;
  for (const PlannedMicroBatch& piece : plan) {
    if (piece.has_own && piece.micro.lanes.size() == 1) continue;
    const LaneGroup group{.instances = instances, .lanes = lanes, .micro = piece.micro};
    const auto add = [&](bool has_own, int64_t most_joined, int64_t elements) {
      for (const LaneStep& step : lane_steps(group, has_own, most_joined)) {
        const int buffer = buffer_of(has_own, step.slot);
        if (step.joins || buffer < 0) continue;
        buffers.resize(std::max(buffers.size(), static_cast<size_t>(buffer) + 1));
        buffers[static_cast<size_t>(buffer)] = std::max(buffers[static_cast<size_t>(buffer)], elements);
      }
    };
    const int64_t touched = piece.micro.instances.size() * limits.seq * config.d_model;
    add(piece.has_own, kAnyLane, largest.matrix);
    add(piece.has_own, by_head, config.vocab_size * config.d_model);
    add(piece.has_own, 0, largest.vector);
    add(true, 0, touched);
    rows = std::max(rows, touched);
  }
  for (const int64_t buffer : buffers) rows += buffer;
  return rows * static_cast<int64_t>(sizeof(float));
}

}  // namespace dz::model
