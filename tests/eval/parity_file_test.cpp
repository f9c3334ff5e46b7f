// Files of others that a model is compared with: what they may leave out, and what is refused.
#include "eval/parity_file.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/thread_pool.h"
#include "eval/parity.h"
#include "eval/parity_files.h"
#include "model/golden.h"

namespace dz::eval::test {
namespace {

using model::load_model;
using model::LoadedModel;
using model::test::golden;
using Floats = std::vector<float>;
using Longs = std::vector<int64_t>;

constexpr size_t kVocab = 96, kWidth = 32;

std::string complaint(const Tensors& tensors, const model::ModelConfig& config, int64_t columns = 0) {
  const Folder folder;
  tensors.write(folder / "golden.safetensors");
  try {
    const GoldenFile file(folder / "golden.safetensors", config, columns);
    for (const GoldenPair& pair : file.pairs()) file.tokens(pair);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ParityFile, MistakesNameTheTensor) {
  const model::ModelConfig config = model::load_config(golden("gqa"));
  const Tensors ids = Tensors().add("x.input_ids", "I64", {2}, Longs{1, 2});
  const auto with = [&](const std::string& name, const char* dtype, const Shape& shape, const auto& values) {
    return complaint(Tensors(ids).add(name, dtype, shape, values), config);
  };
  EXPECT_EQ(with("x.logits", "F32", {2, 96}, Floats(2 * kVocab)), "");
  EXPECT_NE(with("x.logits", "F32", {2, 95}, Floats(190)).find("x.logits"), std::string::npos);
  EXPECT_NE(with("x.logits", "F32", {3, 96}, Floats(3 * kVocab)).find("x.logits"), std::string::npos);
  EXPECT_NE(with("x.logits", "F32", {192}, Floats(192)).find("x.logits"), std::string::npos);
  EXPECT_NE(with("x.logits", "I64", {2, 96}, Longs(192)).find("I64"), std::string::npos);
  EXPECT_NE(with("x.logsumexp", "F32", {2, 1}, Floats(2)).find("x.logsumexp"), std::string::npos);
  EXPECT_NE(with("x.hidden.3", "F32", {2, 31}, Floats(62)).find("x.hidden.3"), std::string::npos);
  EXPECT_NE(with("x.hidden.norm", "F64", {2, 32}, std::vector<double>(64)).find("F64"), std::string::npos);
  const auto of_ids = [&](const char* dtype, const Shape& shape, const auto& values, const Shape& logits) {
    return complaint(
        Tensors().add("x.input_ids", dtype, shape, values).add("x.logits", "F32", logits, Floats(static_cast<size_t>(element_count(logits)))),
        config);
  };
  EXPECT_NE(of_ids("I64", {2}, Longs{1, 96}, {2, 96}).find("token 96"), std::string::npos);
  EXPECT_NE(of_ids("I64", {2}, Longs{1, -1}, {2, 96}).find("token -1"), std::string::npos);
  EXPECT_NE(of_ids("I64", {2}, Longs{1, int64_t{1} << 40}, {2, 96}).find("1099511627776"), std::string::npos);
  EXPECT_NE(of_ids("F32", {2}, Floats{1, 2}, {2, 96}).find("F32"), std::string::npos);
  EXPECT_NE(of_ids("I64", {1, 1, 2}, Longs{1, 2}, {1, 1, 2, 96}).find("x.input_ids"), std::string::npos);
  EXPECT_NE(of_ids("I64", {0}, Longs{}, {0, 96}).find("x.input_ids"), std::string::npos);
  EXPECT_NE(of_ids("I64", {}, Longs{1}, {96}).find("x.input_ids"), std::string::npos);
}

TEST(ParityFile, LogsumexpAndTop1AloneAreEnough) {
  const LoadedModel model = load_model(golden("gqa"));
  const model::test::GoldenFile whole("gqa/expected.safetensors");
  const Folder folder;
  const std::vector<double> lse = whole.numbers("T9.logsumexp");
  const std::vector<int32_t> ids = whole.tokens("T9.input_ids");
  std::vector<int32_t> top = whole.tokens("T9.top1");
  top[4] = (top[4] + 1) % 96;
  Tensors()
      .add("light.input_ids", "I32", {2, 9}, ids)
      .add("light.logsumexp", "F32", {2, 9}, Floats(lse.begin(), lse.end()))
      .add("light.top1", "I32", {2, 9}, top)
      .write(folder / "light.safetensors");
  ThreadPool pool(1);
  const std::vector<PairParity> pairs = compare_with_golden<float>(model, GoldenFile(folder / "light.safetensors", model.config), pool);
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_FALSE(pairs[0].logits.has_value());
  EXPECT_LE(*pairs[0].logsumexp_max_abs, 6e-5);
  EXPECT_DOUBLE_EQ(*pairs[0].top1_agreement, 17.0 / 18.0) << "one of the 18 was changed";
  EXPECT_TRUE(pairs[0].hidden.empty());
}

// The rows of a padded vocabulary, whatever they hold, take no part when both are cut to the first columns.
TEST(ParityFile, APaddedVocabularyIsComparedByItsFirstColumns) {
  const LoadedModel model = load_model(golden("gqa"));
  const model::test::GoldenFile whole("gqa/expected.safetensors");
  const std::vector<double> logits = whole.numbers("T9.logits");
  Floats padded;
  for (size_t row = 0; row < 18; ++row) {
    padded.insert(padded.end(), logits.begin() + static_cast<int64_t>(row * kVocab), logits.begin() + static_cast<int64_t>((row + 1) * kVocab));
    padded.insert(padded.end(), {1e9f, 50.0f, -7.0f, 0.0f});
  }
  const Tensors tensors = Tensors().add("x.input_ids", "I32", {2, 9}, whole.tokens("T9.input_ids")).add("x.logits", "F32", {2, 9, 100}, padded);
  EXPECT_NE(complaint(tensors, model.config).find("--vocab"), std::string::npos);
  EXPECT_NE(complaint(tensors, model.config, 97).find("--vocab"), std::string::npos) << "more columns than the model has";
  const Folder folder;
  tensors.write(folder / "padded.safetensors");
  ThreadPool pool(1);
  for (const int64_t columns : {96, 50}) {
    const GoldenFile file(folder / "padded.safetensors", model.config, columns);
    const PairParity pair = compare_with_golden<float>(model, file, pool).at(0);
    EXPECT_LE(pair.logits->max_kl, 1e-8) << columns;
    EXPECT_LE(pair.logits->max_abs, 6e-5) << columns;
  }
}

TEST(ParityFile, GradientsOfAnotherModelAreRefusedByName) {
  const LoadedModel model = load_model(golden("gqa"));
  ThreadPool pool(1);
  const std::vector<int32_t> tokens = {1, 2, 3};
  const auto complaint_of = [&](const std::string& file, const std::vector<int32_t>& ids) {
    try {
      compare_gradients<float>(model, ids, 1, golden(file), pool);
    } catch (const DataError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(complaint_of("tied/grads.safetensors", tokens), "");
  EXPECT_NE(complaint_of("bias/grads.safetensors", tokens).find("self_attn"), std::string::npos);
  EXPECT_NE(complaint_of("gqa/grads.safetensors", {1}).find("one token"), std::string::npos);
}

// Any byte of the header as another: pairs, an error that names the file, or nothing to compare; never a crash or memory that the file does
// not justify.
TEST(ParityFile, ADamagedHeaderIsAnErrorAtMost) {
  const model::ModelConfig config = model::load_config(golden("gqa"));
  const Folder folder;
  Tensors()
      .add("x.input_ids", "I32", {1, 2}, std::vector<int32_t>{1, 2})
      .add("x.logits", "F32", {1, 2, kVocab}, Floats(2 * kVocab))
      .add("x.hidden.1", "F32", {1, 2, kWidth}, Floats(2 * kWidth))
      .write(folder / "whole.safetensors");
  const std::string whole = read_file(folder / "whole.safetensors");
  const size_t header = 8 + static_cast<size_t>(whole[0]) % 256 + 256 * (static_cast<size_t>(whole[1]) % 256);
  int accepted = 0, refused = 0;
  for (size_t at = 0; at < header; ++at) {
    for (const char other : {'9', '"', 'I'}) {
      std::string damaged = whole;
      damaged[at] = other;
      File file = File::create(folder / "damaged.safetensors");
      file.write(damaged);
      file.close();
      try {
        const GoldenFile golden_file(folder / "damaged.safetensors", config);
        for (const GoldenPair& pair : golden_file.pairs()) EXPECT_LE(golden_file.tokens(pair).size(), 300u);
        ++accepted;
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(accepted, 10);
  EXPECT_GT(refused, 200);
}

}  // namespace
}  // namespace dz::eval::test
