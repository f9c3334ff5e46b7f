#include "train/step_estimate.h"

#include <algorithm>
#include <map>

#include "base/stopwatch.h"
#include "base/thread_pool.h"
#include "base/trace.h"
#include "kernels/attention_sample.h"
#include "kernels/state.h"
#include "model/transformer.h"
#include "optim/adamw.h"
#include "optim/clip.h"
#include "optim/muon.h"

namespace dz::train {
namespace {

// Enough rows for the products to run as fast as they do in the step, and few enough for seconds.
constexpr int64_t kRows = 4096;
constexpr int64_t kVocab = 32768;
constexpr int64_t kOptimizerElements = int64_t{1} << 24;  // beyond the caches

void fill(std::span<float> values, float scale) {
  uint32_t state = 1;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = scale * (static_cast<float>(state >> 8) * 0x1p-23f - 1.0f);
  }
}

double seconds_of(const std::vector<TraceTotal>& totals, const std::string& name, bool self) {
  for (const TraceTotal& total : totals) {
    if (total.name == name) return self ? total.self_seconds : total.seconds;
  }
  return 0;
}

// One layer and the head, without attention, per row.
struct RowSeconds {
  double forward = 0, head = 0, backward = 0;
  std::vector<double> stages;
};

model::ModelConfig one_layer(const Recipe& recipe) {
  model::ModelConfig config = recipe.model;
  config.n_layers = 1;
  config.layers.assign(1, model::LayerKind::kFull);
  config.vocab_size = std::min(config.vocab_size, kVocab);
  return config;
}

template <class T>
RowSeconds measure_rows(const Recipe& recipe, int64_t instances, ThreadPool& pool) {
  const model::ModelConfig config = one_layer(recipe);
  const int64_t seq = std::min(recipe.data.sequence_length, kRows), held = std::clamp<int64_t>(kRows / seq, 1, instances);
  model::Parameters parameters(config), gradients(config, model::Parameters::Role::kGradient);
  fill(parameters.arena(), 0.03f);
  std::vector<int32_t> tokens(static_cast<size_t>(held * seq)), targets = tokens;
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<int32_t>(static_cast<int64_t>(i * 7919) % config.vocab_size);
    targets[i] = static_cast<int32_t>(static_cast<int64_t>(i * 104729) % config.vocab_size);
  }
  model::Transformer<T> transformer(config, {.max_instances = held, .seq = seq}, pool);
  transformer.set_weights(parameters);
  const model::Batch batch{.instances = held, .seq = seq, .tokens = tokens.data(), .targets = targets.data()};
  RowSeconds best;
  for (int round = 0; round < 3; ++round) {
    model::LossOut loss;
    Trace::start();
    transformer.forward_backward(batch, 1e-3f, 1e-5f, model::whole_batch(held, recipe.lanes), gradients, loss);
    Trace::stop();
    const std::vector<TraceTotal> totals = Trace::totals();
    RowSeconds took{.forward = loss.forward_seconds - seconds_of(totals, "attention forward", true),
                    .head = loss.head_seconds * static_cast<double>(recipe.model.vocab_size) / static_cast<double>(config.vocab_size),
                    .backward = loss.backward_seconds - seconds_of(totals, "attention backward", true),
                    .stages = {}};
    for (const model::Stage stage : model::kStages)
      took.stages.push_back(stage == model::Stage::kContext ? 0 : seconds_of(totals, std::string(name_of(stage)), false));
    if (round == 1 || (round > 1 && took.forward + took.backward < best.forward + best.backward)) best = took;  // the first warms up
  }
  const double rows = static_cast<double>(held * seq);
  for (double* seconds : {&best.forward, &best.head, &best.backward}) *seconds /= rows;
  for (double& seconds : best.stages) seconds /= rows;
  return best;
}

struct AttentionSeconds {
  double forward = 0, backward = 0;
};

// Of one instance, all heads.
template <class T>
AttentionSeconds measure_attention(const Recipe& recipe, int64_t window, ThreadPool& pool) {
  const model::ModelConfig& config = recipe.model;
  const int64_t seq = recipe.data.sequence_length, dim = config.head_dim, group = config.n_heads / config.n_kv_heads;
  const int64_t kv_heads = std::min(config.n_kv_heads, std::max<int64_t>(pool.threads(), kRows * 4 / seq)), heads = kv_heads * group;
  kernels::AttentionSample<T> sample({.instances = 1, .keys = seq, .heads = heads, .kv_heads = kv_heads, .head_dim = dim, .window = window});
  AttentionSeconds best;
  for (int round = 0; round < 3; ++round) {
    Stopwatch watch;
    sample.forward(pool);
    const double forward = watch.lap();
    sample.backward(pool);
    const double backward = watch.lap();
    if (round == 1 || (round > 1 && forward + backward < best.forward + best.backward)) best = {forward, backward};
  }
  const double scale = static_cast<double>(config.n_heads) / static_cast<double>(heads);
  return {best.forward * scale, best.backward * scale};
}

struct OptimizerSeconds {
  double update = 0, add = 0;  // per element
};

OptimizerSeconds measure_optimizer(const Recipe& recipe, ThreadPool& pool) {
  const auto count = static_cast<size_t>(std::min(kOptimizerElements, model::num_params(recipe.model)));
  std::vector<float> value(count), gradient(count), exp_avg(count), exp_avg_sq(count);
  std::vector<bf16> cast(recipe.dtype == "bf16" ? count : 0);
  fill(gradient, 1e-3f);
  const optim::GradientView view{"sample", static_cast<int64_t>(count), gradient.data()};
  const optim::OptimizedTensor tensor{"sample", static_cast<int64_t>(count), gradient.data(), value.data(), exp_avg.data(), exp_avg_sq.data()};
  const double decay = recipe.adamw.weight_decay;
  OptimizerSeconds best{1e9, 1e9};
  for (int round = 0; round < 3; ++round) {
    Stopwatch watch;
    optim::global_norm({&view, 1}, pool);
    optim::adamw_update(recipe.adamw, {&tensor, 1}, {&decay, 1}, 1e-4, 1.0f, round, pool);
    if (!cast.empty()) kernels::cast_to_bf16({.count = static_cast<int64_t>(count), .x = value.data(), .out = cast.data()}, pool);
    best.update = std::min(best.update, watch.lap());
    kernels::add({.count = static_cast<int64_t>(count), .a = exp_avg.data(), .b = gradient.data()}, pool);
    best.add = std::min(best.add, watch.lap());
  }
  return {best.update / static_cast<double>(count), best.add / static_cast<double>(count)};
}

// One iteration of Muon on each shape of matrix, times its iterations and the matrices of that shape; 0 under AdamW.
double measure_muon(const Recipe& recipe, ThreadPool& pool) {
  if (recipe.optimizer != OptimizerName::kMuon) return 0;
  std::map<std::pair<int64_t, int64_t>, int64_t> shapes;
  for (const model::ParameterSpec& spec : model::parameter_specs(recipe.model)) {
    if (optim::is_muon_matrix(spec.name, spec.shape)) ++shapes[{spec.shape[0], spec.shape[1]}];
  }
  optim::MuonSettings settings = recipe.muon;
  settings.ns_steps = 1;
  optim::Muon muon(settings);
  double seconds = 0;
  for (const auto& [shape, matrices] : shapes) {
    const auto count = static_cast<size_t>(shape.first * shape.second);
    std::vector<float> gradient(count), value(count), momentum(count);
    fill(gradient, 1e-3f);
    double best = 1e9;
    for (int round = 0; round < 2; ++round) {
      Stopwatch watch;
      muon.update({.rows = shape.first, .cols = shape.second, .gradient = gradient.data(), .value = value.data(), .momentum = momentum.data()}, 1e-4,
                  settings.weight_decay, 1.0f, pool);
      best = std::min(best, watch.lap());
    }
    seconds += best * static_cast<double>(recipe.muon.ns_steps * matrices);
  }
  return seconds;
}

template <class T>
StepEstimate estimate(const Recipe& recipe, const MemoryPlan& plan, ThreadPool& pool) {
  const model::ModelConfig& config = recipe.model;
  const RowSeconds row = measure_rows<T>(recipe, plan.instances, pool);
  const auto layers = static_cast<double>(config.n_layers);
  const auto rows = static_cast<double>(plan.step_instances * recipe.data.sequence_length);
  StepEstimate estimate{.forward = row.forward * rows * layers, .head = row.head * rows, .backward = row.backward * rows * layers};
  double context = 0;
  const auto sliding = std::ranges::count(config.layers, model::LayerKind::kSliding);
  for (const auto& [window, count] : {std::pair{config.window, sliding}, std::pair{int64_t{0}, config.n_layers - sliding}}) {
    if (count == 0) continue;
    const AttentionSeconds took = measure_attention<T>(recipe, window, pool);
    const auto times = static_cast<double>(plan.step_instances * count);
    estimate.forward += took.forward * times;
    estimate.backward += took.backward * times;
    context += took.forward * times;
  }
  const double again = (layers - 1) / layers;
  for (const double seconds : row.stages) estimate.stages.push_back(seconds * rows * layers * again);
  estimate.stages[static_cast<size_t>(model::Stage::kContext)] = context * again;
  const OptimizerSeconds optimizer = measure_optimizer(recipe, pool);
  const auto parameters = static_cast<double>(model::num_params(config));
  estimate.optimizer = optimizer.update * parameters + measure_muon(recipe, pool);
  estimate.merge = optimizer.add * parameters * static_cast<double>(plan.micro_batches - 1);
  return estimate;
}

}  // namespace

double StepEstimate::seconds(model::Remat remat) const {
  double all = forward + head + backward + optimizer + merge;
  for (size_t i = 0; i < stages.size(); ++i) all += remat.recomputes(model::kStages[i]) ? stages[i] : 0;
  return all;
}

StepEstimate estimate_step(const Recipe& recipe, const MemoryPlan& plan, ThreadPool& pool) {
  return recipe.dtype == "bf16" ? estimate<bf16>(recipe, plan, pool) : estimate<float>(recipe, plan, pool);
}

}  // namespace dz::train
