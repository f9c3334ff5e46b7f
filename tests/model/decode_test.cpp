// A cached step gives the bits of a full forward pass; greedy tokens are those of the references; the choice of tokens is theirs too.
#include "model/decode.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/thread_pool.h"
#include "model/golden.h"
#include "model/synthetic.h"

namespace dz::model::test {
namespace {

template <class T>
class Decoding : public ::testing::Test {};
using Types = ::testing::Types<bf16, float>;
TYPED_TEST_SUITE(Decoding, Types);

// Far beyond three windows of 13 and over several tiles of 64 keys.
constexpr int64_t kSeq = 150;

TYPED_TEST(Decoding, CachedStepsGiveTheBitsOfAFullPass) {
  for (const bool tied : {false, true}) {
    ModelConfig config = awkward_config(tied, !tied);
    if (tied) config.yarn = YarnScaling{.factor = 4, .original_max_position_embeddings = 40, .attention_factor = 1.14};
    const Parameters parameters = lively_parameters(config);
    const SyntheticBatch batch(1, kSeq, config.vocab_size);
    ThreadPool pool(2);
    Transformer<TypeParam> whole(config, {.seq = kSeq, .backward = false}, pool);
    whole.set_weights(parameters);
    const std::vector<float> wanted = logits_of(whole, {.instances = 1, .seq = kSeq, .tokens = batch.tokens.data()}, config.vocab_size);
    const size_t vocab = static_cast<size_t>(config.vocab_size);
    const auto same = [&](std::span<const float> logits, int64_t row) {
      return std::memcmp(logits.data(), wanted.data() + static_cast<size_t>(row) * vocab, vocab * sizeof(float)) == 0;
    };
    Decoder<TypeParam> decoder(config, kSeq, pool);
    decoder.set_weights(parameters);
    for (int64_t i = 0; i < kSeq; ++i) ASSERT_TRUE(same(decoder.append({batch.tokens.data() + i, 1}), i)) << i;
    // A prompt at once and in pieces, ending anywhere in a tile.
    for (const int64_t prompt : {1, 40, 64, 65, 140}) {
      decoder.reset();
      EXPECT_TRUE(same(decoder.append({batch.tokens.data(), static_cast<size_t>(prompt)}), prompt - 1)) << prompt;
      EXPECT_TRUE(same(decoder.append({batch.tokens.data() + prompt, 9}), prompt + 8)) << prompt;
      EXPECT_FALSE(same(decoder.append({batch.tokens.data(), 1}), prompt + 9) && batch.tokens[0] != batch.tokens[static_cast<size_t>(prompt + 9)]);
    }
  }
}

// So far that a sliding layer lets go of keys several times, in steps that end anywhere in a tile.
TYPED_TEST(Decoding, SlidingLayersForgetWhatIsBehindTheirWindow) {
  constexpr int64_t kLong = 1500;
  for (const int64_t window : {1, 13, 64, 130}) {
    ModelConfig config = awkward_config(false, false);
    config.window = window;
    config.yarn = YarnScaling{.factor = 4, .original_max_position_embeddings = 300, .attention_factor = 1.14};
    const Parameters parameters = lively_parameters(config);
    const SyntheticBatch batch(1, kLong, config.vocab_size);
    ThreadPool pool(2);
    Transformer<TypeParam> whole(config, {.seq = kLong, .backward = false}, pool);
    whole.set_weights(parameters);
    const std::vector<float> wanted = logits_of(whole, {.instances = 1, .seq = kLong, .tokens = batch.tokens.data()}, config.vocab_size);
    Decoder<TypeParam> decoder(config, kLong, pool);
    decoder.set_weights(parameters);
    for (int round = 0; round < 2; ++round) {
      decoder.reset();
      int64_t step = 1;
      for (int64_t at = 0; at < kLong; step = step * 7 % 311) {
        const int64_t count = std::min(step, kLong - at);
        const std::span<const float> got = decoder.append({batch.tokens.data() + at, static_cast<size_t>(count)});
        at += count;
        ASSERT_EQ(std::memcmp(got.data(), wanted.data() + (static_cast<size_t>(at) - 1) * got.size(), got.size_bytes()), 0) << window << " " << at;
      }
    }
  }
}

TYPED_TEST(Decoding, APromptLongerThanItsPieces) {
  const ModelConfig config = awkward_config(false, false);
  const Parameters parameters = lively_parameters(config);
  const SyntheticBatch batch(1, 300, config.vocab_size);
  ThreadPool pool(2);
  Transformer<TypeParam> whole(config, {.seq = 300, .backward = false}, pool);
  whole.set_weights(parameters);
  const std::vector<float> wanted = logits_of(whole, {.instances = 1, .seq = 300, .tokens = batch.tokens.data()}, config.vocab_size);
  Decoder<TypeParam> decoder(config, 300, pool);
  decoder.set_weights(parameters);
  const std::span<const float> last = decoder.append(batch.tokens);
  EXPECT_EQ(std::memcmp(last.data(), wanted.data() + 299 * last.size(), last.size_bytes()), 0);
  EXPECT_EQ(decoder.length(), 300);
}

class Greedy : public ::testing::TestWithParam<const char*> {};

TEST_P(Greedy, TokensAndLogitsOfTheReference) {
  const LoadedModel model = load_model(golden(GetParam()));
  const GoldenFile expected(std::string(GetParam()) + "/expected.safetensors");
  const std::vector<int32_t> prompts = expected.tokens("generate.prompt"), wanted = expected.tokens("generate.tokens");
  const std::vector<double> logits = expected.has("generate.logits") ? expected.numbers("generate.logits") : std::vector<double>{};
  const size_t vocab = static_cast<size_t>(model.config.vocab_size);
  ThreadPool pool(1);
  Decoder<float> decoder(model.config, 33, pool);
  for (size_t row = 0; row < 2; ++row) {
    decoder.set_weights(model.parameters);
    const std::span<const int32_t> prompt(prompts.data() + row * 9, 9);
    const std::vector<int32_t> tokens = generate<float>(decoder, prompt, 24, {}, {});
    EXPECT_EQ(tokens, std::vector<int32_t>(wanted.begin() + static_cast<int64_t>(row) * 24, wanted.begin() + static_cast<int64_t>(row + 1) * 24));
    if (logits.empty()) continue;
    decoder.reset();
    std::span<const float> next = decoder.append(prompt);
    for (size_t i = 0; i < 24; ++i) {
      EXPECT_LE(max_difference(next, std::span(logits).subspan((row * 24 + i) * vocab, vocab)), 6e-5) << i;
      if (i < 23) next = decoder.append({tokens.data() + i, 1});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Goldens, Greedy, ::testing::ValuesIn(kVariants), [](const auto& variant) { return std::string(variant.param); });

std::vector<float> golden_row(const nlohmann::json& row) {
  std::vector<float> logits;
  for (const nlohmann::json& value : row) logits.push_back(value.is_string() ? -INFINITY : value.get<float>());
  return logits;
}

TEST(Sampling, KeepsWhatTransformersKeeps) {
  const nlohmann::json goldens = nlohmann::json::parse(read_file(golden("sampling.json")));
  int compared = 0;
  for (const nlohmann::json& row_case : goldens["cases"]) {
    const nlohmann::json& setting = row_case["setting"];
    const Sampling sampling{.temperature = setting.value("temperature", 1.0),
                            .top_k = setting.value("top_k", int64_t{0}),
                            .top_p = setting.value("top_p", 1.0),
                            .min_p = setting.value("min_p", 0.0)};
    const std::vector<float> logits = golden_row(goldens["rows"][row_case["row"]]);
    std::vector<Candidate> kept = candidates(logits, sampling);
    std::ranges::sort(kept, {}, &Candidate::token);
    std::vector<int32_t> tokens;
    for (const Candidate& candidate : kept) tokens.push_back(candidate.token);
    EXPECT_EQ(tokens, row_case["kept"].get<std::vector<int32_t>>()) << row_case["row"] << setting;
    // The reference divides by the temperature in float32: half an ulp of the largest quotient.
    double largest_logit = 0;
    for (const float logit : logits)
      largest_logit = std::max(largest_logit, std::isinf(logit) ? 0.0 : std::abs(double{logit}) / sampling.temperature);
    const double tolerance = 1e-6 + 0x1p-24 * (sampling.temperature == 1.0 ? 0.0 : largest_logit);
    for (const Candidate& candidate : kept) {
      EXPECT_NEAR(candidate.probability, double{row_case["probabilities"][static_cast<size_t>(candidate.token)]}, tolerance)
          << row_case["row"] << setting;
    }
    ++compared;
  }
  EXPECT_EQ(compared, 170);
}

TEST(Sampling, IsAFunctionOfSeedAndIndex) {
  const std::vector<float> logits = {0.1f, 2.3f, -0.7f, 1.9f, 0.4f, 2.1f};
  const auto sequence = [&](uint64_t seed) {
    std::vector<int32_t> tokens;
    for (uint64_t i = 0; i < 64; ++i) tokens.push_back(choose(logits, {.temperature = 0.8, .top_p = 0.95, .seed = seed}, i));
    return tokens;
  };
  EXPECT_EQ(sequence(1), sequence(1));
  EXPECT_NE(sequence(1), sequence(2));
}

TEST(Sampling, ChoosesAsOftenAsTheProbabilitiesSay) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.2f)};
  std::vector<int> counts(3);
  constexpr int kDraws = 20000;
  for (uint64_t i = 0; i < kDraws; ++i) ++counts[static_cast<size_t>(choose(logits, {.temperature = 1.0, .seed = 3}, i))];
  EXPECT_NEAR(counts[0] / double{kDraws}, 0.5, 0.015);  // four standard deviations
  EXPECT_NEAR(counts[1] / double{kDraws}, 0.3, 0.013);
  EXPECT_NEAR(counts[2] / double{kDraws}, 0.2, 0.012);
}

TEST(Sampling, RefusesWhatMakesNoSense) {
  EXPECT_THROW(validate(Sampling{.temperature = -1}), ConfigError);
  EXPECT_THROW(validate(Sampling{.temperature = NAN}), ConfigError);
  EXPECT_THROW(validate(Sampling{.top_p = 0}), ConfigError);
  EXPECT_THROW(validate(Sampling{.top_p = 1.5}), ConfigError);
  EXPECT_THROW(validate(Sampling{.top_k = -1}), ConfigError);
  EXPECT_THROW(validate(Sampling{.min_p = 1.01}), ConfigError);
  EXPECT_THROW(validate(Sampling{.min_p = NAN}), ConfigError);
  EXPECT_THROW(choose(std::vector<float>{1, NAN}, {}, 0), DataError);
}

TEST(Decoder, RefusesTokensBeyondTheVocabulary) {
  const ModelConfig config = awkward_config(false, false);
  ThreadPool pool(1);
  Decoder<float> decoder(config, 4, pool);
  const Parameters parameters = lively_parameters(config);
  decoder.set_weights(parameters);
  EXPECT_THROW(decoder.append(std::vector<int32_t>{101}), DataError);
  EXPECT_THROW(decoder.append(std::vector<int32_t>{-1}), DataError);
}

}  // namespace
}  // namespace dz::model::test
