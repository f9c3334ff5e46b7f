// The promise: the same bytes of parameters, moments and trainer state at step N, whatever carries the run.
#include <gtest/gtest.h>

#include <algorithm>

#include "data/orders.h"
#include "kernels/table.h"
#include "model/init.h"
#include "runs.h"

namespace dz::train::test {
namespace {

struct Carrier {
  std::vector<std::string> topology;
  kernels::Isa isa;
};

std::string name_of(const Carrier& carrier) {
  std::string text(kernels::name_of(carrier.isa));
  for (const std::string& set : carrier.topology) text += " " + set;
  return text;
}

// Every form with its own topology, and every topology with the best form; under sanitizers, which make a step ten times slower, two of them.
std::vector<Carrier> carriers() {
  const kernels::Isa best = kernels::available().back();
  const Carrier one_thread{{"topology.threads=1", "topology.micro_batch=1", "topology.loader_threads=0"}, best};
  const Carrier three_threads{{"topology.threads=3", "topology.micro_batch=8", "topology.remat=full"}, best};
  if (DZ_SANITIZED) return {one_thread, three_threads};
  std::vector<Carrier> all = {one_thread, three_threads};
  for (const kernels::Isa isa : kernels::available()) all.push_back({{"topology.threads=2"}, isa});
  all.push_back({{"topology.threads=2", "topology.micro_batch=2", "topology.loader_threads=4", "topology.prefetch=4"}, best});
  all.push_back({{"topology.threads=1", "topology.micro_batch=12", "topology.loader_threads=1"}, best});
  return all;
}

TEST(Contract, EveryCarrierGivesTheRecordedDigests) {
  for (const std::string dtype : {"bf16", "fp32"}) {
    for (const Carrier& carrier : carriers()) {
      TempDir temp;
      kernels::activate(carrier.isa);
      std::vector<std::string> sets = carrier.topology;
      sets.push_back("recipe.dtype=" + dtype);
      train_contract(temp / "run", sets);
      EXPECT_EQ(digest_at(temp / "run", 20), recorded(dtype, 20)) << dtype << " " << name_of(carrier);
      EXPECT_EQ(digest_at(temp / "run", 40), recorded(dtype, 40)) << dtype << " " << name_of(carrier);
    }
  }
  kernels::activate(kernels::available().back());
}

TEST(Contract, TheModelLearns) {
  TempDir temp;
  train_contract(temp / "run");
  const auto lines = metrics(temp / "run");
  ASSERT_EQ(lines.size(), 40u);
  EXPECT_LT(lines[39]["loss"].get<double>(), lines[0]["loss"].get<double>() - 0.5);
}

// A batch with its state, to be disturbed in one place.
struct OneStep {
  Config config = load_config(contract_config(), {});
  ThreadPool pool{2};
  TrainingData data = open_data(config.recipe, {}, pool);
  std::shared_ptr<const data::Order> order = dz::test::keyed_order(data.dataset->instances(), config.recipe.batch, config.recipe.data.seed);
  TrainState state{config.recipe};

  OneStep() { model::init_parameters(config.recipe.seed, state.parameters, pool); }
  data::Batch batch() const { return data::make_batch(*data.dataset, *order, state.step + 1, config.recipe.data.document_masks); }
  std::string digest_after(const data::Batch& batch) {
    Stepper stepper(config.recipe, config.topology, pool);
    stepper.step(state, batch);
    return checkpoint::digest_tensors(state.parameters.views(), pool).total.hex();
  }
};

TEST(ContractControls, OneUlpInOneWeightIsSeen) {
  OneStep whole, disturbed;
  const data::Batch batch = whole.batch();
  float& weight = disturbed.state.parameters.tensor(disturbed.state.parameters.index_of("model.layers.3.mlp.up_proj.weight"))[17];
  weight = std::bit_cast<float>(std::bit_cast<uint32_t>(weight) ^ 1u);
  EXPECT_NE(whole.digest_after(batch), disturbed.digest_after(batch));
}

TEST(ContractControls, TwoInstancesSwappedAreSeen) {
  OneStep whole, swapped;
  data::Batch batch = whole.batch();
  const std::string expected = whole.digest_after(batch);
  const auto seq = static_cast<size_t>(batch.sequence_length);
  for (auto* values : {&batch.tokens, &batch.targets, &batch.first_visible}) {
    std::swap_ranges(values->begin(), values->begin() + static_cast<int64_t>(seq), values->begin() + static_cast<int64_t>(5 * seq));
  }
  EXPECT_NE(swapped.digest_after(batch), expected);
}

TEST(ContractControls, OneLaneDroppedIsSeen) {
  OneStep whole, dropped;
  data::Batch batch = whole.batch();
  const std::string expected = whole.digest_after(batch);
  // Lane 3 holds the instances 4 and 5: without labels they add nothing to any gradient.
  const auto seq = batch.sequence_length;
  std::fill(batch.targets.begin() + 4 * seq, batch.targets.begin() + 6 * seq, data::kNoTarget);
  EXPECT_NE(dropped.digest_after(batch), expected);
}

TEST(ContractControls, AnotherLaneCountGivesOtherBits) {
  OneStep eight, four;
  four.config.recipe.lanes = 4;
  const data::Batch batch = eight.batch();
  EXPECT_NE(eight.digest_after(batch), four.digest_after(batch));
}

}  // namespace
}  // namespace dz::train::test
