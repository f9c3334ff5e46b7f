// The promise: micro-batches, threads, kept or recomputed activations and chunks of logits never move a bit of loss or gradient.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>

#include "base/thread_pool.h"
#include "kernels/state.h"
#include "kernels/table.h"
#include "model/golden.h"
#include "model/synthetic.h"
#include "model/workspace.h"

namespace dz::model::test {
namespace {

constexpr int64_t kInstances = 12, kSeq = 77;

struct Result {
  std::vector<float> gradients;  // of every parameter, one after the other
  std::vector<double> ce, z;

  friend bool operator==(const Result& a, const Result& b) { return same(a.gradients, b.gradients) && same(a.ce, b.ce) && same(a.z, b.z); }

 private:
  template <class V>
  static bool same(const V& a, const V& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0;
  }
};

struct Carrier {
  int64_t micro_batch = kInstances;
  int threads = 1;
  Remat remat = Remat::kNone;
  int64_t chunk_rows = 0;
  bool joined = false;  // nodes by the engine, not whole copies
};

// What a trainer does with a batch: micro-batches in order, joined by the lane tree. Either each has a copy of all gradients, and whole copies are
// added; or those that complete a node are added to what is there, tensor by tensor, in the engine.
template <class T>
Result run(const ModelConfig& config, const Parameters& parameters, const SyntheticBatch& batch, int64_t lanes, const Carrier& carrier) {
  ThreadPool pool(carrier.threads);
  Transformer<T> model(config,
                       {.max_instances = carrier.micro_batch, .seq = batch.seq, .head_chunk_rows = carrier.chunk_rows, .remat = carrier.remat}, pool);
  model.set_weights(parameters);
  std::vector<std::unique_ptr<Parameters>> copies;
  GradientNodes nodes;
  const auto merge = [&](int a, int b) {
    Parameters& left = *copies[static_cast<size_t>(a)];
    nodes.left.push_back(&left);
    if (carrier.joined) return;
    kernels::add({.count = static_cast<int64_t>(left.arena().size()), .a = left.arena().data(), .b = copies[static_cast<size_t>(b)]->arena().data()},
                 pool);
  };
  parallel::LaneTree tree(batch.instances, lanes, merge);
  Result result;
  for (const parallel::MicroBatch& micro : parallel::plan_micro_batches(batch.instances, lanes, carrier.micro_batch, {0, lanes})) {
    if (micro.first_part) {
      copies.push_back(std::make_unique<Parameters>(config, Parameters::Role::kGradient));
      for (float& value : copies.back()->arena()) value = 3.0f;  // left over from before: nobody clears gradients
    }
    const int slot = static_cast<int>(copies.size()) - 1;
    nodes = {};
    if (carrier.joined && micro.last_part) tree.add(micro.lanes, slot);
    if (nodes.left.empty() || !micro.first_part || !micro.last_part) nodes.own = copies.back().get();
    LossOut loss;
    model.forward_backward(batch.part(micro.instances.begin, micro.instances.end), 1.0f / static_cast<float>(batch.labels()), 1e-3f,
                           {.instances = batch.instances, .lanes = lanes, .micro = micro}, nodes, loss);
    result.ce.insert(result.ce.end(), loss.ce.begin(), loss.ce.end());
    result.z.insert(result.z.end(), loss.z.begin(), loss.z.end());
    if (!carrier.joined && micro.last_part) tree.add(micro.lanes, slot);
  }
  Parameters& root = *copies[static_cast<size_t>(tree.root())];
  finish_tied_gradient(root, pool);
  for (size_t i = 0; i < root.size(); ++i) result.gradients.insert(result.gradients.end(), root.tensor(i).begin(), root.tensor(i).end());
  return result;
}

template <class T>
class Invariance : public ::testing::Test {
 protected:
  const ModelConfig config_ = awkward_config(false, true);
  const Parameters parameters_ = lively_parameters(config_);
  const SyntheticBatch batch_{kInstances, kSeq, config_.vocab_size};
  const Result base_ = run<T>(config_, parameters_, batch_, 8, {});
};

using Types = ::testing::Types<bf16, float>;
TYPED_TEST_SUITE(Invariance, Types);

TYPED_TEST(Invariance, CarriersNeverMoveABit) {
  const Carrier kCarriers[] = {
      {.micro_batch = 1},
      {.micro_batch = 2, .threads = 3},
      {.micro_batch = 3, .remat = Remat::kFull},
      {.micro_batch = 6, .chunk_rows = 64},
      {.threads = 2, .remat = Remat::kFull, .chunk_rows = 32},
      {.micro_batch = 8, .threads = 3},
      {.micro_batch = 1, .joined = true},
      {.micro_batch = 2, .threads = 3, .joined = true},
      {.micro_batch = 3, .chunk_rows = 96, .joined = true},
      {.micro_batch = 6, .remat = Remat::kFull, .chunk_rows = 32, .joined = true},
      {.micro_batch = 8, .joined = true},
  };
  for (const Carrier& carrier : kCarriers) {
    EXPECT_TRUE(run<TypeParam>(this->config_, this->parameters_, this->batch_, 8, carrier) == this->base_)
        << "micro_batch " << carrier.micro_batch << ", threads " << carrier.threads << ", remat " << to_text(carrier.remat) << ", chunk "
        << carrier.chunk_rows << ", joined " << carrier.joined;
  }
}

TYPED_TEST(Invariance, WhateverIsComputedAgainTheBitsStay) {
  std::vector<std::string> policies;
  for (const std::string_view preset : remat_presets()) policies.emplace_back(preset);
  for (const Stage stage : kStages) policies.emplace_back(name_of(stage));
  policies.emplace_back("qkv,context,gate_up");
  for (const std::string& policy : policies) {
    const Remat remat = parse_remat(policy).value();
    EXPECT_EQ(to_text(remat), policy);
    EXPECT_TRUE(run<TypeParam>(this->config_, this->parameters_, this->batch_, 8, {.micro_batch = 4, .remat = remat}) == this->base_) << policy;
  }
}

TYPED_TEST(Invariance, EachPresetTakesLessMemoryThanTheOneBefore) {
  int64_t before = std::numeric_limits<int64_t>::max();
  for (const std::string_view preset : remat_presets()) {
    const Limits limits{.max_instances = 4, .seq = kSeq, .remat = parse_remat(preset).value()};
    int64_t bytes = 0;
    const std::vector<ArenaLine> lines = activation_lines<TypeParam>(this->config_, limits, &bytes);
    EXPECT_LT(bytes, before) << preset;
    before = bytes;
    ThreadPool pool(1);
    EXPECT_EQ(bytes, Transformer<TypeParam>(this->config_, limits, pool).activation_bytes());
    int64_t sum = 0;
    for (const ArenaLine& line : lines) sum += line.bytes;
    EXPECT_GE(sum, bytes) << "tensors that lie over others";
  }
}

TEST(Remat, OnlyNamesOfPresetsAndStagesAreRead) {
  EXPECT_EQ(to_text(parse_remat("middle,turned").value()), "minimal_with_context");
  for (const char* wrong : {"", "ful", "qkv,", ",qkv", "qkv context", "none,qkv"}) EXPECT_FALSE(parse_remat(wrong)) << wrong;
}

TYPED_TEST(Invariance, EveryInstructionSetGivesTheSameBits) {
  const kernels::Isa before = kernels::active().isa;
  for (const kernels::Isa isa : kernels::available()) {
    kernels::activate(isa);
    EXPECT_TRUE(run<TypeParam>(this->config_, this->parameters_, this->batch_, 8, {.micro_batch = 6, .threads = 2}) == this->base_)
        << kernels::name_of(isa);
  }
  kernels::activate(before);
}

TYPED_TEST(Invariance, LanesThatAreEmptyOrHoldSeveralInstances) {
  for (const int64_t lanes : {1, 2, 16}) {
    const Result whole = run<TypeParam>(this->config_, this->parameters_, this->batch_, lanes, {});
    EXPECT_TRUE(run<TypeParam>(this->config_, this->parameters_, this->batch_, lanes, {.micro_batch = 1, .threads = 2}) == whole) << lanes;
    EXPECT_TRUE(run<TypeParam>(this->config_, this->parameters_, this->batch_, lanes, {.micro_batch = 5}) == whole) << lanes;
    EXPECT_FALSE(whole == this->base_) << "other lanes are another sum: " << lanes;
  }
}

TYPED_TEST(Invariance, TiedHeadGoesThroughTheTreeOnItsOwn) {
  const ModelConfig tied = awkward_config(true, false);
  const Parameters parameters = lively_parameters(tied);
  const Result whole = run<TypeParam>(tied, parameters, this->batch_, 8, {});
  EXPECT_TRUE(run<TypeParam>(tied, parameters, this->batch_, 8, {.micro_batch = 1}) == whole);
  EXPECT_TRUE(run<TypeParam>(tied, parameters, this->batch_, 8, {.micro_batch = 4, .remat = Remat::kFull}) == whole);
}

TYPED_TEST(Invariance, NoticesOneUlpInOneWeight) {
  Parameters moved = this->parameters_;
  const size_t norm = moved.index_of("model.layers.1.mlp.down_proj.weight");
  const int bits = sizeof(TypeParam) == 2 ? 1 << 16 : 1;  // one ulp of the compute type
  int32_t value;
  std::memcpy(&value, &moved.tensor(norm)[7], sizeof value);
  value += bits;
  std::memcpy(&moved.tensor(norm)[7], &value, sizeof value);
  EXPECT_FALSE(run<TypeParam>(this->config_, moved, this->batch_, 8, {}) == this->base_);
}

TYPED_TEST(Invariance, NoticesSwappedInstancesAndADroppedOne) {
  SyntheticBatch swapped = this->batch_;
  for (auto* all : {&swapped.tokens, &swapped.targets, &swapped.first_visible})
    std::swap_ranges(all->begin(), all->begin() + kSeq, all->begin() + 5 * kSeq);
  EXPECT_FALSE(run<TypeParam>(this->config_, this->parameters_, swapped, 8, {}).gradients == this->base_.gradients);
  SyntheticBatch dropped = this->batch_;
  std::fill_n(dropped.targets.begin() + 3 * kSeq, kSeq, -1);
  EXPECT_FALSE(run<TypeParam>(this->config_, this->parameters_, dropped, 8, {}) == this->base_);
}

TYPED_TEST(Invariance, EvaluationGivesTheLossOfTraining) {
  ThreadPool pool(2);
  Transformer<TypeParam> model(this->config_, {.max_instances = kInstances, .seq = kSeq, .head_chunk_rows = 32, .backward = false}, pool);
  model.set_weights(this->parameters_);
  LossOut loss;
  model.forward_loss(this->batch_.part(0, kInstances), loss);
  EXPECT_EQ(loss.ce, this->base_.ce);
  EXPECT_EQ(loss.z, this->base_.z);
  EXPECT_EQ(loss.labels, this->batch_.labels());
}

}  // namespace
}  // namespace dz::model::test
