// Held-out loss: a number of the tokens and the model alone.
#include "eval/loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/thread_pool.h"
#include "data/shards.h"
#include "model/golden.h"
#include "model/parity.h"

namespace dz::eval {
namespace {

// Row 58: instances at a time and threads are no part of it, it is a mean over tokens and not over batches or sources, and it is the loss of
// a plain forward pass over the same tokens.
TEST(HeldOutLoss, IsThatOfAPlainForwardPassWhateverTheMicroBatch) {
  const test::TemporaryDirectory root;
  std::vector<test::RawSource> sources = {{.name = "a", .tokens = {}}, {.name = "b", .tokens = {}}};
  for (uint32_t i = 0; i < 100; ++i) sources[0].tokens.push_back(i * 37 % 95);
  for (uint32_t i = 0; i < 35; ++i) sources[1].tokens.push_back(i * 11 % 95);
  test::write_raw(root / "shards", 96, 95, sources);
  const auto shards = std::make_shared<const data::TokenShards>((root / "shards").string());
  const model::LoadedModel model = model::load_model(model::test::golden("gqa"));

  ThreadPool pool(2);
  double sum = 0;
  model::Transformer<float> plain(model.config, {.max_instances = 1, .seq = 16, .backward = false}, pool);
  plain.set_weights(model.parameters);
  int64_t tokens = 0;
  for (const test::RawSource& source : sources) {
    for (size_t first = 0; first + 16 <= source.tokens.size(); first += 16) {
      const std::vector<int32_t> ids(source.tokens.begin() + static_cast<int64_t>(first), source.tokens.begin() + static_cast<int64_t>(first) + 16);
      plain.forward_logits({.instances = 1, .seq = 16, .tokens = ids.data()}, [&](int64_t row, int64_t rows, const float* logits) {
        for (int64_t i = row; i < std::min<int64_t>(row + rows, 15); ++i) {
          const std::span<const float> one(logits + (i - row) * 96, 96);
          sum += model::log_sum_exp(one) - double{one[static_cast<size_t>(ids[static_cast<size_t>(i) + 1])]};
          ++tokens;
        }
      });
    }
  }
  ASSERT_EQ(tokens, (6 + 2) * 15);

  for (const auto& [micro_batch, threads] : {std::pair{1, 1}, {4, 2}, {64, 3}}) {
    ThreadPool threads_of(threads);
    const LossResult result = held_out_loss(
        model.config, model.parameters, shards,
        {.split = data::Split::kTrain, .dtype = "fp32", .sequence_length = 16, .document_masks = false, .micro_batch = micro_batch}, threads_of);
    ASSERT_EQ(result.sources.size(), 2u);
    EXPECT_EQ(result.total.tokens, tokens);
    EXPECT_NEAR(result.total.loss(), sum / static_cast<double>(tokens), 1e-6);
    EXPECT_EQ(result.total.sum, result.sources[0].sum + result.sources[1].sum);
    EXPECT_GT(std::abs((result.sources[0].loss() + result.sources[1].loss()) / 2 - result.total.loss()), 1e-4) << "not the mean of the sources";
    static double first = result.total.sum;
    EXPECT_EQ(result.total.sum, first) << micro_batch;
  }
}

}  // namespace
}  // namespace dz::eval
