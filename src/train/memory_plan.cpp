#include "train/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "model/lane_plan.h"
#include "model/parameters.h"
#include "model/weights.h"
#include "model/workspace.h"

namespace dz::train {
namespace {

// How a step's micro-batches are summed.
struct GradientPlan {
  int64_t copies = 0;  // of all gradients
  std::vector<model::PlannedMicroBatch> pieces;
};

GradientPlan plan_gradients(int64_t instances, int64_t lanes, parallel::Span range, const std::vector<parallel::MicroBatch>& plan) {
  GradientPlan gradients;
  const bool aligned = range.size() > 0 && (range.size() & (range.size() - 1)) == 0 && range.begin % range.size() == 0;
  if (!aligned) {
    // The nodes of a range that is not one of the tree's stay apart until other ranks' are joined.
    int64_t bits = 0;
    while ((int64_t{1} << bits) < lanes) ++bits;
    gradients.copies = std::max<int64_t>(1, 2 * bits);
    for (const parallel::MicroBatch& micro : plan) gradients.pieces.push_back({.micro = micro, .slot = 0, .has_own = true, .left = {}});
    return gradients;
  }
  gradients.pieces = model::plan_step(instances, lanes, range, plan);
  for (const model::PlannedMicroBatch& piece : gradients.pieces) {
    if (piece.has_own) gradients.copies = std::max<int64_t>(gradients.copies, piece.slot + 1);
  }
  return gradients;
}

// Lanes of the rank that has most instances: ranges of non-empty lanes, as equal as they can be.
parallel::Span busiest_range(int64_t instances, int64_t lanes, int64_t ranks) {
  parallel::Span best{0, lanes};
  int64_t most = -1;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const parallel::Span range{rank * lanes / ranks, (rank + 1) * lanes / ranks};
    int64_t held = 0;
    for (int64_t lane = range.begin; lane < range.end; ++lane) held += parallel::lane_instances(instances, lanes, lane).size();
    if (held > most) {
      most = held;
      best = range;
    }
  }
  return best;
}

void check_ranks(const Recipe& recipe, int64_t instances, int64_t ranks) {
  const int64_t most = std::min(recipe.lanes, instances);
  if (ranks <= most) return;
  throw ConfigError(Complaint{.where = "--ranks",
                              .found = fmt::format("{} ranks for {} instances a step in {} lanes", ranks, instances, recipe.lanes),
                              .expected = fmt::format("at most {}", most),
                              .hint = recipe.lanes < instances
                                          ? "each rank adds up whole lanes: a larger recipe.lanes allows more (and is another recipe)"
                                          : "an instance is never cut over ranks: a larger batch allows more"});
}

}  // namespace

MemoryPlan plan_memory(const Recipe& recipe, const Topology& topology, int64_t ranks, bool sharded) {
  const int64_t instances = largest_batch(recipe);
  check_ranks(recipe, instances, ranks);
  const parallel::Span range = busiest_range(instances, recipe.lanes, ranks);
  const std::vector<parallel::MicroBatch> pieces = parallel::plan_micro_batches(instances, recipe.lanes, topology.micro_batch, range);
  MemoryPlan plan;
  plan.micro_batches = static_cast<int64_t>(pieces.size());
  int64_t held = 0;
  for (const parallel::MicroBatch& piece : pieces) held += piece.instances.size();
  plan.step_instances = held;
  plan.instances = std::min(topology.micro_batch, held);
  const GradientPlan gradients = plan_gradients(instances, recipe.lanes, range, pieces);
  plan.gradients = gradients.copies;

  constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
  using Role = model::Parameters::Role;
  const int64_t state = model::Parameters::arena_elements(recipe.model, Role::kState) * kFloat;
  const int64_t gradient = model::Parameters::arena_elements(recipe.model, Role::kGradient) * kFloat;
  int64_t matrix = 0, square = 0;  // elements, of Muon
  for (const model::ParameterSpec& spec : model::parameter_specs(recipe.model)) {
    const int64_t count = element_count(spec.shape);
    if (recipe.optimizer != OptimizerName::kMuon || !optim::is_muon_matrix(spec.name, spec.shape)) continue;
    matrix = std::max(matrix, count);
    square = std::max(square, std::min(spec.shape[0], spec.shape[1]) * std::min(spec.shape[0], spec.shape[1]));
  }
  const int64_t share = sharded ? (state + ranks - 1) / ranks : state;
  const bool bf16_compute = recipe.dtype == "bf16";
  plan.state = {{"weights (f32)", bf16_compute ? share : state}, {"exp_avg", share}, {"exp_avg_sq", share}, {"gradients", plan.gradients * gradient}};
  if (bf16_compute) plan.state.push_back({"matrices (bf16)", model::matrix_elements(recipe.model) * static_cast<int64_t>(sizeof(bf16))});
  if (matrix > 0) plan.state.push_back({"Muon's scratch", matrix * 6 + square * 4});  // an update in f32 and bf16, two squares in bf16

  const model::Limits limits{
      .max_instances = plan.instances, .seq = recipe.data.sequence_length, .remat = model::parse_remat(topology.remat).value_or(model::Remat::kNone)};
  const int64_t buffers = model::lane_buffer_bytes(recipe.model, limits, instances, recipe.lanes, gradients.pieces);
  if (buffers > 0) plan.state.push_back({"lane buffers", buffers});
  const std::vector<model::ArenaLine> lines = bf16_compute ? model::activation_lines<bf16>(recipe.model, limits, &plan.activation_bytes)
                                                           : model::activation_lines<float>(recipe.model, limits, &plan.activation_bytes);
  for (const model::ArenaLine& line : lines) plan.activations.push_back({line.name, line.bytes});
  plan.bytes = plan.activation_bytes;
  for (const MemoryLine& line : plan.state) plan.bytes += line.bytes;
  return plan;
}

}  // namespace dz::train
