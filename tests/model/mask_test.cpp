// What a token may see, through the whole model and to the bit: nothing beyond the window, nothing of another document, nothing later.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "model/golden.h"
#include "model/synthetic.h"

namespace dz::model::test {
namespace {

constexpr int64_t kSeq = 100;

template <class T>
class Mask : public ::testing::Test {
 protected:
  // Every layer slides, so what two layers see is bounded.
  static ModelConfig sliding(int64_t window, int64_t layers) {
    ModelConfig config = awkward_config(false, false);
    config.n_layers = layers;
    config.window = window;
    config.set_window_pattern(0);
    return config;
  }

  static std::vector<float> logits(const ModelConfig& config, const std::vector<int32_t>& tokens,
                                   const std::vector<int32_t>* first_visible = nullptr) {
    ThreadPool pool(2);
    const Parameters parameters = lively_parameters(config);
    Transformer<T> model(config, {.seq = kSeq, .backward = false}, pool);
    model.set_weights(parameters);
    const Batch batch{.instances = 1, .seq = kSeq, .tokens = tokens.data(), .first_visible = first_visible ? first_visible->data() : nullptr};
    return logits_of(model, batch, config.vocab_size);
  }

  static bool row_differs(const std::vector<float>& a, const std::vector<float>& b, int64_t row) {
    return std::memcmp(a.data() + row * 101, b.data() + row * 101, 101 * sizeof(float)) != 0;
  }

  static std::vector<int32_t> tokens() { return SyntheticBatch(1, kSeq, 101).tokens; }
};

using Types = ::testing::Types<bf16, float>;
TYPED_TEST_SUITE(Mask, Types);

TYPED_TEST(Mask, AWindowOfFourIsFourKeysItselfIncluded) {
  const ModelConfig config = TestFixture::sliding(4, 1);
  std::vector<int32_t> tokens = TestFixture::tokens();
  const std::vector<float> base = TestFixture::logits(config, tokens);
  for (const int64_t changed : {10, 60, 63, 64}) {
    std::vector<int32_t> other = tokens;
    other[static_cast<size_t>(changed)] = (other[static_cast<size_t>(changed)] + 1) % 101;
    const std::vector<float> moved = TestFixture::logits(config, other);
    for (int64_t row = 0; row < kSeq; ++row)
      EXPECT_EQ(TestFixture::row_differs(base, moved, row), row >= changed && row < changed + 4) << changed << " seen by " << row;
  }
}

TYPED_TEST(Mask, AWindowOfOneIsTheTokenAlone) {
  const ModelConfig config = TestFixture::sliding(1, 3);
  std::vector<int32_t> tokens = TestFixture::tokens();
  const std::vector<float> base = TestFixture::logits(config, tokens);
  tokens[50] = (tokens[50] + 1) % 101;
  const std::vector<float> moved = TestFixture::logits(config, tokens);
  for (int64_t row = 0; row < kSeq; ++row) EXPECT_EQ(TestFixture::row_differs(base, moved, row), row == 50) << row;
}

TYPED_TEST(Mask, AWindowAsLongAsTheSequenceIsFullAttention) {
  ModelConfig full = TestFixture::sliding(0, 3);
  full.set_window_pattern(1);
  const std::vector<float> wanted = TestFixture::logits(full, TestFixture::tokens());
  for (const int64_t window : {kSeq, kSeq + 1, int64_t{1} << 29})
    EXPECT_EQ(TestFixture::logits(TestFixture::sliding(window, 3), TestFixture::tokens()), wanted) << window;
  EXPECT_NE(TestFixture::logits(TestFixture::sliding(kSeq - 1, 3), TestFixture::tokens()), wanted);
}

TYPED_TEST(Mask, DocumentsDoNotSeeEachOther) {
  ModelConfig config = awkward_config(false, false);
  std::vector<int32_t> tokens = TestFixture::tokens(), first_visible(kSeq, 0);
  std::fill(first_visible.begin() + 41, first_visible.end(), 41);
  const std::vector<float> masked = TestFixture::logits(config, tokens, &first_visible), open = TestFixture::logits(config, tokens);
  tokens[40] = (tokens[40] + 1) % 101;
  const std::vector<float> masked_moved = TestFixture::logits(config, tokens, &first_visible), open_moved = TestFixture::logits(config, tokens);
  for (int64_t row = 0; row < kSeq; ++row) {
    EXPECT_EQ(TestFixture::row_differs(masked, masked_moved, row), row == 40) << row;
    EXPECT_EQ(TestFixture::row_differs(open, open_moved, row), row >= 40) << "without the mask, " << row;
  }
}

}  // namespace
}  // namespace dz::model::test
