// One training step: a batch in, new weights out. docs/one-step.md walks it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "data/loader.h"
#include "model/lane_plan.h"
#include "model/parameters.h"
#include "model/transformer.h"
#include "optim/skip_step.h"
#include "train/gradient_fault.h"
#include "train/metrics.h"
#include "train/recipe.h"
#include "train/update.h"

namespace dz::train {

// All that a checkpoint holds and a step changes.
struct TrainState {
  explicit TrainState(const Recipe& recipe);
  model::Parameters parameters, exp_avg, exp_avg_sq;
  int64_t step = 0;       // steps done; the next is step + 1
  int64_t adam_step = 0;  // updates done, from recipe.optimizer.initial_step on: skipped steps do not count
  int64_t tokens = 0;     // read so far
  optim::SkipStep guard;
};

// Both moments under the names that checkpoints give them, in the order of the parameters.
std::vector<TensorView> moment_views(const TrainState& state);

// The trainer's part of the state as canonical JSON: equal states have equal bytes.
std::string trainer_json(const TrainState& state);
// Of a state that no step has changed yet.
std::string fresh_trainer_json();
// CheckpointError naming `where`.
void restore_trainer(std::string_view json, const std::string& where, TrainState& state);

class Stepper {
 public:
  // The peak of memory is fixed here: activations of the largest micro-batch and one gradient for each open node of the lane tree.
  Stepper(const Recipe& recipe, const Topology& topology, ThreadPool& pool);
  ~Stepper();

  // For tests: breaks the gradient of some steps. Their reports name it.
  void set_fault(std::optional<GradientFault> fault) { fault_ = std::move(fault); }

  // Does step state.step + 1. A skipped step changes only step, tokens and the guard's window.
  StepReport step(TrainState& state, const data::Batch& batch);

  int64_t activation_bytes() const;
  int64_t gradient_bytes() const;
  int64_t lane_buffer_bytes() const;

 private:
  using Engine = std::variant<std::unique_ptr<model::Transformer<bf16>>, std::unique_ptr<model::Transformer<float>>>;
  struct Sums {
    std::vector<double> ce, z;  // [instances]
    PhaseSeconds seconds;
  };

  const std::vector<model::PlannedMicroBatch>& plan_of(int64_t instances);
  // The gradient of the whole batch, in the slot that is returned, and its loss.
  int accumulate(const data::Batch& batch, Sums& sums);
  void report_losses(const data::Batch& batch, const Sums& sums, StepReport& report) const;
  model::Parameters& gradient_in(int slot);

  const Recipe& recipe_;
  ThreadPool& pool_;
  const int64_t micro_batch_;
  std::vector<model::PlannedMicroBatch> plan_;  // of planned_ instances
  int64_t planned_ = 0;
  Engine engine_;
  std::vector<std::unique_ptr<model::Parameters>> slots_;
  Updater updater_;
  std::optional<GradientFault> fault_;
};

}  // namespace dz::train
