// What plan says of a run's memory is what the run allocates.
#include "train/memory_plan.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/thread_pool.h"
#include "model/init.h"
#include "train/config.h"
#include "train/step.h"
#include "train/step_estimate.h"

namespace dz::train {
namespace {

Config contract(const std::vector<std::string>& sets) { return load_config(fs::path(DZ_SOURCE) / "configs" / "contract.yaml", sets); }

data::Batch batch_of(const Recipe& recipe) {
  data::Batch batch{.step = 1, .instances = recipe.batch, .sequence_length = recipe.data.sequence_length};
  const auto count = static_cast<size_t>(recipe.batch * recipe.data.sequence_length);
  for (size_t i = 0; i < count; ++i) {
    batch.tokens.push_back(static_cast<int32_t>(i % 100));
    batch.targets.push_back(static_cast<int32_t>((i + 1) % 100));
  }
  for (int64_t i = 0; i < recipe.batch; ++i) {
    batch.ids.push_back(i);
    batch.row_labels.push_back(recipe.data.sequence_length);
    batch.filtered.push_back(0);
  }
  batch.labels = static_cast<int64_t>(count);
  return batch;
}

int64_t bytes_called(const MemoryPlan& plan, const std::string& name) {
  for (const MemoryLine& line : plan.state) {
    if (line.name == name) return line.bytes;
  }
  return 0;
}

TEST(MemoryPlan, IsWhatAStepAllocates) {
  for (const char* micro_batch : {"1", "2", "3", "4", "8", "12"}) {
    for (const char* remat : {"none", "save_dot_with_context_except_mlp", "full"}) {
      const Config config = contract({std::string("topology.micro_batch=") + micro_batch, std::string("topology.remat=") + remat});
      const MemoryPlan plan = plan_memory(config.recipe, config.topology);
      ThreadPool pool(1);
      TrainState state(config.recipe);
      model::init_parameters(model::InitSettings{}, config.recipe.model, state.parameters, pool);
      Stepper stepper(config.recipe, config.topology, pool);
      stepper.step(state, batch_of(config.recipe));
      EXPECT_EQ(plan.activation_bytes, stepper.activation_bytes()) << micro_batch << " " << remat;
      EXPECT_EQ(bytes_called(plan, "gradients"), stepper.gradient_bytes()) << micro_batch << " " << remat;
      EXPECT_EQ(bytes_called(plan, "lane buffers"), stepper.lane_buffer_bytes()) << micro_batch << " " << remat;
      EXPECT_EQ(bytes_called(plan, "weights (f32)"), static_cast<int64_t>(state.parameters.arena().size_bytes()));
    }
  }
}

TEST(MemoryPlan, MuonsScratchIsWhatItsUpdatesAllocate) {
  const Config config = contract({"recipe.optimizer.name=muon"});
  ThreadPool pool(1);
  optim::Muon muon(config.recipe.muon);
  for (const model::ParameterSpec& spec : model::parameter_specs(config.recipe.model)) {
    if (!optim::is_muon_matrix(spec.name, spec.shape)) continue;
    std::vector<float> zero(static_cast<size_t>(element_count(spec.shape))), value = zero, momentum = zero;
    muon.update({.rows = spec.shape[0], .cols = spec.shape[1], .gradient = zero.data(), .value = value.data(), .momentum = momentum.data()}, 0.01,
                0.1, 1.0f, pool);
  }
  EXPECT_EQ(bytes_called(plan_memory(config.recipe, config.topology), "Muon's scratch"), muon.scratch_bytes());
  EXPECT_EQ(bytes_called(plan_memory(contract({}).recipe, config.topology), "Muon's scratch"), 0);
  EXPECT_GT(estimate_step(config.recipe, plan_memory(config.recipe, config.topology), pool).optimizer, 0);
}

TEST(MemoryPlan, RanksHoldLessUntilThereIsNoInstanceForOneMore) {
  const Config config = contract({"topology.micro_batch=2"});
  const MemoryPlan one = plan_memory(config.recipe, config.topology), four = plan_memory(config.recipe, config.topology, 4, true);
  EXPECT_EQ(one.step_instances, config.recipe.batch);
  EXPECT_LT(four.step_instances, one.step_instances);
  EXPECT_EQ(bytes_called(four, "exp_avg"), (bytes_called(one, "exp_avg") + 3) / 4);
  const int64_t most = std::min(config.recipe.lanes, config.recipe.batch);
  EXPECT_NO_THROW(plan_memory(config.recipe, config.topology, most));
  EXPECT_THROW(plan_memory(config.recipe, config.topology, most + 1), ConfigError);
}

TEST(StepEstimate, EachStageThatIsComputedAgainAddsItsTime) {
  const Config config = contract({});
  ThreadPool pool(1);
  const StepEstimate estimate = estimate_step(config.recipe, plan_memory(config.recipe, config.topology), pool);
  double before = 0;
  for (const std::string_view preset : model::remat_presets()) {
    const double seconds = estimate.seconds(model::parse_remat(preset).value());
    EXPECT_GT(seconds, before) << preset;
    before = seconds;
  }
}

}  // namespace
}  // namespace dz::train
