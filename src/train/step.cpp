#include "train/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/error.h"
#include "base/stopwatch.h"
#include "base/thread_pool.h"
#include "base/trace.h"
#include "checkpoint/digest.h"
#include "optim/clip.h"

namespace dz::train {
namespace {

template <class T>
std::unique_ptr<model::Transformer<T>> make_engine(const Recipe& recipe, const Topology& topology, int64_t instances, ThreadPool& pool) {
  const model::Limits limits{.max_instances = instances, .seq = recipe.data.sequence_length, .remat = model::parse_remat(topology.remat).value()};
  return std::make_unique<model::Transformer<T>>(recipe.model, limits, pool);
}

std::string trainer_text(int64_t step, int64_t adam_step, int64_t tokens, const optim::SkipStep& guard) {
  const nlohmann::ordered_json json{
      {"step", step}, {"adam_step", adam_step}, {"tokens", tokens}, {"skip_step", nlohmann::ordered_json::parse(guard.to_json())}};
  return json.dump() + "\n";
}

}  // namespace

TrainState::TrainState(const Recipe& recipe) : parameters(recipe.model), exp_avg(recipe.model), exp_avg_sq(recipe.model), guard(recipe.skip_step) {}

std::vector<TensorView> moment_views(const TrainState& state) {
  std::vector<TensorView> views = state.exp_avg.views();
  for (TensorView& view : views) view.name = checkpoint::exp_avg_name(view.name);
  for (TensorView& view : state.exp_avg_sq.views()) {
    view.name = checkpoint::exp_avg_sq_name(view.name);
    views.push_back(std::move(view));
  }
  return views;
}

std::string trainer_json(const TrainState& state) { return trainer_text(state.step, state.adam_step, state.tokens, state.guard); }

std::string fresh_trainer_json() { return trainer_text(0, 0, 0, optim::SkipStep({})); }

void restore_trainer(std::string_view text, const std::string& where, TrainState& state) {
  const nlohmann::ordered_json json = nlohmann::ordered_json::parse(text, nullptr, false);
  const auto integer = [&](const char* key) {
    if (!json.is_object() || !json.contains(key) || !json[key].is_number_integer() || json[key].get<int64_t>() < 0) {
      throw CheckpointError(
          Complaint{.where = where, .found = "no such key", .expected = fmt::format("{} as an integer of at least 0", key), .hint = ""});
    }
    return json[key].get<int64_t>();
  };
  state.step = integer("step");
  state.adam_step = integer("adam_step");
  state.tokens = integer("tokens");
  if (!json.contains("skip_step")) throw CheckpointError(where + ": found no skip_step");
  state.guard.restore(json["skip_step"].dump(), where);
}

Stepper::Stepper(const Recipe& recipe, const Topology& topology, ThreadPool& pool)
    : recipe_(recipe), pool_(pool), micro_batch_(topology.micro_batch), updater_(recipe) {
  const int64_t most = std::min(micro_batch_, largest_batch(recipe));
  if (recipe.dtype == "bf16") {
    engine_ = make_engine<bf16>(recipe, topology, most, pool);
  } else {
    engine_ = make_engine<float>(recipe, topology, most, pool);
  }
}

Stepper::~Stepper() = default;

model::Parameters& Stepper::gradient_in(int slot) {
  const auto index = static_cast<size_t>(slot);
  if (index >= slots_.size()) slots_.resize(index + 1);
  if (slots_[index] == nullptr) slots_[index] = std::make_unique<model::Parameters>(recipe_.model, model::Parameters::Role::kGradient);
  return *slots_[index];
}

const std::vector<model::PlannedMicroBatch>& Stepper::plan_of(int64_t instances) {
  const parallel::Span all{0, recipe_.lanes};
  if (instances != planned_)
    plan_ = model::plan_step(instances, recipe_.lanes, all, parallel::plan_micro_batches(instances, recipe_.lanes, micro_batch_, all));
  planned_ = instances;
  return plan_;
}

int Stepper::accumulate(const data::Batch& batch, Sums& sums) {
  const std::vector<float> weights = loss_weights(batch, recipe_.loss_divisor, recipe_.divisor_ranks);
  const std::vector<model::PlannedMicroBatch>& plan = plan_of(batch.instances);
  for (const model::PlannedMicroBatch& planned : plan) {
    const parallel::MicroBatch& micro = planned.micro;
    const int64_t first = micro.instances.begin * batch.sequence_length;
    const float* const weight = weights.data() + micro.instances.begin;
    const bool equal = std::all_of(weight, weight + micro.instances.size(), [weight](float other) { return other == *weight; });
    const model::Batch piece{.instances = micro.instances.size(),
                             .seq = batch.sequence_length,
                             .tokens = batch.tokens.data() + first,
                             .targets = batch.targets.data() + first,
                             .first_visible = batch.first_visible.empty() ? nullptr : batch.first_visible.data() + first,
                             .weights = equal ? nullptr : weight};
    model::GradientNodes nodes;
    if (planned.has_own) nodes.own = &gradient_in(planned.slot);
    for (const int left : planned.left) nodes.left.push_back(&gradient_in(left));
    model::LossOut loss;
    std::visit(
        [&](const auto& engine) {
          engine->forward_backward(piece, *weight, static_cast<float>(recipe_.z_loss), {batch.instances, recipe_.lanes, micro}, nodes, loss);
        },
        engine_);
    sums.ce.insert(sums.ce.end(), loss.ce.begin(), loss.ce.end());
    sums.z.insert(sums.z.end(), loss.z.begin(), loss.z.end());
    sums.seconds.forward += loss.forward_seconds;
    sums.seconds.head += loss.head_seconds;
    sums.seconds.backward += loss.backward_seconds;
  }
  return plan.back().root();
}

void Stepper::report_losses(const data::Batch& batch, const Sums& sums, StepReport& report) const {
  const int64_t ranks = recipe_.divisor_ranks;
  report.loss = static_cast<float>(mean_loss(batch, sums.ce, recipe_.loss_divisor, ranks));
  report.z_loss = static_cast<float>(mean_loss(batch, sums.z, recipe_.loss_divisor, ranks) * recipe_.z_loss);
  report.loss_global = static_cast<float>(mean_loss(batch, sums.ce, Divisor::kGlobal, ranks));
  report.loss_olmo_core = static_cast<float>(mean_loss(batch, sums.ce, Divisor::kOlmoCore, ranks));
  report.labels = batch.labels;
  report.instances = batch.instances;
  report.filtered = std::count(batch.filtered.begin(), batch.filtered.end(), uint8_t{1});
  if (recipe_.loss_divisor != Divisor::kOlmoCore || ranks == 1 || ranks > kLoggedRanks) return;
  const std::vector<double> ce = rank_losses(batch, sums.ce, ranks), z = rank_losses(batch, sums.z, ranks);
  report.ranks.resize(static_cast<size_t>(ranks));
  for (size_t rank = 0; rank < report.ranks.size(); ++rank) {
    report.ranks[rank].loss = static_cast<float>(ce[rank]);
    report.ranks[rank].z_loss = static_cast<float>(z[rank] * recipe_.z_loss);
  }
  for (size_t row = 0; row < batch.row_labels.size(); ++row) {
    RankReport& rank = report.ranks[row % report.ranks.size()];
    ++rank.instances;
    rank.labels += batch.row_labels[row];
    rank.filtered += batch.filtered[row];
  }
}

StepReport Stepper::step(TrainState& state, const data::Batch& batch) {
  DZ_CHECK(batch.step == state.step + 1 && batch.instances >= 1, "batch.step", batch.step, "state.step", state.step);
  StepReport report{.step = batch.step, .tokens = batch.instances * batch.sequence_length};
  report.lr = learning_rate(recipe_, batch.step, state.tokens + report.tokens);
  report.batch_digest = batch.digest;

  // Forward and backward, lane by lane; then one gradient.
  Stopwatch watch;
  std::visit([&](const auto& engine) { engine->set_weights(state.parameters); }, engine_);
  const double cast_seconds = watch.lap();
  Sums sums;
  const int slot = accumulate(batch, sums);
  model::Parameters& gradient = *slots_[static_cast<size_t>(slot)];
  model::finish_tied_gradient(gradient, pool_);
  report_losses(batch, sums, report);
  if (fault_ && fault_->strikes(batch.step)) {
    fault_->apply(gradient);
    report.fault = fault_->text;
  }

  // May it be used?
  watch.lap();
  const TraceSpan span("optimizer");
  std::vector<optim::GradientView> views;
  for (size_t i = 0; i < gradient.size(); ++i)
    views.push_back({gradient.specs()[i].name, static_cast<int64_t>(gradient.tensor(i).size()), gradient.tensor(i).data()});
  report.grad_norm = optim::global_norm(views, pool_);
  // A batch without a target says nothing: no update, and nothing for the guard to remember.
  const optim::SkipVerdict verdict =
      batch.labels > 0 ? state.guard.judge(report.loss, report.grad_norm) : state.guard.pass_over("no target in the batch");
  report.skipped = verdict.skip;
  report.skip_reason = verdict.reason;

  if (!report.skipped) {
    const float clip = optim::clip_coefficient(report.grad_norm, static_cast<float>(recipe_.max_grad_norm));
    updater_.update(state, gradient, clip, report.lr, pool_);
    ++state.adam_step;
  }
  report.adam_step = state.adam_step;
  report.phases = sums.seconds;
  report.phases.optimizer = cast_seconds + watch.lap();
  state.step = batch.step;
  state.tokens += report.tokens;
  report.tokens_total = state.tokens;
  return report;
}

int64_t Stepper::activation_bytes() const {
  return std::visit([](const auto& engine) { return engine->activation_bytes(); }, engine_);
}

int64_t Stepper::gradient_bytes() const {
  int64_t bytes = 0;
  for (const auto& slot : slots_) bytes += slot == nullptr ? 0 : static_cast<int64_t>(slot->arena().size_bytes());
  return bytes;
}

int64_t Stepper::lane_buffer_bytes() const {
  return std::visit([](const auto& engine) { return engine->lane_buffer_bytes(); }, engine_);
}

}  // namespace dz::train
