// parity and generate as a person runs them: output, errors and exit codes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "checkpoint/safetensors.h"
#include "cli/run.h"

namespace dz {
namespace {

using test::deltazero;
using test::Outcome;

std::string model(const std::string& name) { return std::string(DZ_GOLDEN) + "/model/" + name; }

TEST(ParityVerb, PrintsEveryPairAsJson) {
  const Outcome outcome = deltazero("parity " + model("gqa") + " --golden " + model("gqa/expected.safetensors") + " --gradients " +
                                    model("gqa/grads.safetensors") + " --gradients-of T48 --json");
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  const nlohmann::json report = nlohmann::json::parse(outcome.text), pairs = report["pairs"];
  ASSERT_EQ(pairs.size(), 4u);
  EXPECT_EQ(pairs[0]["name"], "T1");
  for (const nlohmann::json& pair : pairs) {
    EXPECT_LT(pair["mean_kl"], 1e-9);
    EXPECT_LT(pair["max_kl"], 1e-9);
    EXPECT_LT(pair["max_abs"], 6e-5);
    EXPECT_EQ(pair["top1_agreement"], 1.0);
    EXPECT_GT(pair["floor"]["mean_kl"], 1e-5) << "fp32 against bf16";
  }
  EXPECT_EQ(pairs[2]["hidden"].size(), 10u);
  EXPECT_EQ(report["gradients"].size(), 91u);
  EXPECT_EQ(report["same"], true);
}

TEST(ParityVerb, ExitCodes) {
  const std::string base = "parity " + model("base") + " --no-floor --golden ";
  EXPECT_EQ(deltazero(base + model("base/expected.safetensors") + " --dtype bf16").code, 0);
  const Outcome strict = deltazero(base + model("base/expected.safetensors") + " --dtype bf16 --max-kl 1e-9");
  EXPECT_EQ(strict.code, 1) << strict.text;
  EXPECT_NE(strict.text.find("DIFFERENT"), std::string::npos) << strict.text;
  EXPECT_EQ(deltazero(base + model("base/expected.safetensors") + " --dtype bf16 --max-gradient 1e-3 --gradients-of T48 --gradients " +
                      model("base/grads.safetensors"))
                .code,
            1);
  EXPECT_EQ(deltazero(base + model("base/grads.safetensors")).code, 2);
  EXPECT_EQ(deltazero(base + model("gqa/expected.safetensors")).code, 65) << "logits of another vocabulary";
  EXPECT_EQ(deltazero(base + model("base/config.json")).code, 65) << "not a safetensors file";
  EXPECT_EQ(deltazero(base + model("nowhere.safetensors")).code, 66);
  EXPECT_EQ(deltazero(base + model("base/expected.safetensors") + " --dtype fp8").code, 64);
  const Outcome unnamed = deltazero(base + model("base/expected.safetensors") + " --gradients " + model("base/grads.safetensors"));
  EXPECT_EQ(unnamed.code, 64) << unnamed.text;
  EXPECT_NE(unnamed.text.find("T1, T9, T48, T96"), std::string::npos) << unnamed.text;
  EXPECT_EQ(deltazero("parity " + model("nowhere") + " --golden x").code, 66);
  EXPECT_EQ(deltazero("parity " + model("base")).code, 64);
  EXPECT_EQ(deltazero("parity " + model("base") + " " + model("base")).code, 64);
  EXPECT_EQ(deltazero("parity " + model("base") + " " + model("base") + " --golden x").code, 64);
}

class TwoModels : public ::testing::Test {
 protected:
  TwoModels() {
    std::string name = (fs::temp_directory_path() / "dz-parity-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
    write_file_atomic(directory_ / "ids", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n{\"ids\": [90, 80, 70]}\n");
  }
  ~TwoModels() override { fs::remove_all(directory_); }
  Outcome parity(const std::string& a, const std::string& b, const std::string& options = "") {
    return deltazero("parity " + a + " " + b + " --tokens " + (directory_ / "ids").string() + " " + options);
  }

  fs::path directory_;
};

TEST_F(TwoModels, AModelEqualsItselfAndBf16IsNoFurtherThanItsFloor) {
  const Outcome same = parity(model("gqa"), model("gqa"), "--json --gradients-of S1");
  ASSERT_EQ(same.code, 0) << same.text;
  const nlohmann::json report = nlohmann::json::parse(same.text);
  ASSERT_EQ(report["pairs"].size(), 2u);
  EXPECT_EQ(report["pairs"][0]["name"], "S1");
  EXPECT_EQ(report["pairs"][0]["positions"], 16);
  EXPECT_EQ(report["pairs"][0]["max_abs"], 0.0);
  EXPECT_EQ(report["gradients_of"], "S1");
  for (const nlohmann::json& gradient : report["gradients"]) EXPECT_EQ(gradient["relative"], 0.0);
  const Outcome bf16 = parity(model("gqa"), model("gqa"), "--json --dtype bf16 --threads 1");
  const nlohmann::json rounded = nlohmann::json::parse(bf16.text)["pairs"][0];
  EXPECT_GT(rounded["mean_kl"], 1e-6);
  EXPECT_EQ(rounded["mean_kl"], rounded["floor"]["mean_kl"]);
  EXPECT_EQ(rounded["floor"]["mean_kl"], report["pairs"][0]["floor"]["mean_kl"]);
}

TEST_F(TwoModels, OtherModelsDiffer) {
  const Outcome other = parity(model("tied"), model("bias"));
  EXPECT_EQ(other.code, 1) << other.text;
  EXPECT_NE(other.text.find("DIFFERENT  S1: mean KL"), std::string::npos) << other.text;
  EXPECT_NE(other.text.find("likeliest token differs"), std::string::npos) << other.text;
  EXPECT_NE(other.text.find("fp32 | bf16"), std::string::npos) << other.text;
  EXPECT_EQ(parity(model("gqa"), model("olmo2")).code, 1) << "other shapes: their logits alone";
}

TEST_F(TwoModels, SaysWhatIsWrong) {
  const Outcome vocabulary = parity(model("gqa"), model("base"));
  EXPECT_EQ(vocabulary.code, 78) << vocabulary.text;
  EXPECT_NE(vocabulary.text.find("--vocab"), std::string::npos) << vocabulary.text;
  EXPECT_EQ(parity(model("gqa"), model("base"), "--vocab 96").code, 1);
  EXPECT_EQ(parity(model("gqa"), model("base"), "--vocab 97").code, 78);
  EXPECT_EQ(parity(model("gqa"), model("gqa"), "--gradients-of S9").code, 64);
  EXPECT_EQ(parity(model("gqa"), model("gqa"), "--gradients x").code, 64);
  EXPECT_EQ(parity(model("gqa"), model("nowhere")).code, 66);
  write_file_atomic(directory_ / "ids", "1 2 96\n");
  EXPECT_EQ(parity(model("gqa"), model("gqa")).code, 65);
  write_file_atomic(directory_ / "ids", "\n");
  EXPECT_EQ(parity(model("gqa"), model("gqa")).code, 2);
}

class GenerateVerb : public ::testing::Test {
 protected:
  GenerateVerb() {
    std::string name = (fs::temp_directory_path() / "dz-generate-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
    for (const char* file : {"config.json", "model.safetensors"}) fs::copy(model("base") + "/" + file, directory_ / file);
  }
  ~GenerateVerb() override { fs::remove_all(directory_); }
  void add_tokenizer() { fs::copy(std::string(DZ_GOLDEN) + "/tokenizer/code-512.json", directory_ / "tokenizer.json"); }
  Outcome generate(const std::string& options) { return deltazero("generate " + directory_.string() + " " + options); }

  fs::path directory_;
};

TEST_F(GenerateVerb, IsAFunctionOfModelPromptAndOptions) {
  add_tokenizer();
  const std::string common = "--prompt 'int main' --max-tokens 12 ";
  const Outcome greedy = generate(common);
  ASSERT_EQ(greedy.code, 0) << greedy.text;
  EXPECT_EQ(greedy.text.substr(0, 8), "int main");
  EXPECT_GT(greedy.text.size(), 9u);
  EXPECT_EQ(generate(common + "--threads 1").text, greedy.text);
  const Outcome drawn = generate(common + "--temperature 1.5 --seed 1");
  EXPECT_EQ(generate(common + "--temperature 1.5 --seed 1 --threads 3").text, drawn.text);
  EXPECT_NE(generate(common + "--temperature 1.5 --seed 2").text, drawn.text);
}

TEST_F(GenerateVerb, SaysWhatIsWrong) {
  const Outcome missing = generate("--prompt x");
  EXPECT_EQ(missing.code, 66) << missing.text;
  EXPECT_NE(missing.text.find("tokenizer.json"), std::string::npos) << missing.text;
  add_tokenizer();
  EXPECT_EQ(generate("--prompt x --temperature -1").code, 78);
  EXPECT_EQ(generate("--prompt x --top-p 0").code, 78);
  EXPECT_EQ(generate("--prompt x --max-tokens 0").code, 64);
  EXPECT_EQ(generate("").code, 64) << "no prompt";
  write_file_atomic(directory_ / "model.safetensors", "short");
  EXPECT_EQ(generate("--prompt x").code, 65);
}

std::string golden_ids(const checkpoint::TensorSource& source, const std::string& name, int64_t row) {
  const checkpoint::StoredTensor& tensor = source.at(name);
  std::vector<int64_t> values(static_cast<size_t>(tensor.elements()));
  source.read(tensor, std::as_writable_bytes(std::span(values)));
  const int64_t width = tensor.shape.back();
  return nlohmann::json(std::vector<int64_t>(values.begin() + row * width, values.begin() + (row + 1) * width)).dump();
}

// A batch gives the tokens of transformers, and each line alone gives the same.
TEST_F(TwoModels, GenerateContinuesIdsAsTransformers) {
  const std::string ids = (directory_ / "ids").string(), options = " --ids " + ids + " --max-tokens 24 --dtype fp32 --json";
  for (const char* name : {"gqa", "yarn", "olmo2"}) {
    const auto expected = checkpoint::TensorSource::open(model(std::string(name) + "/expected.safetensors"));
    std::string both;
    for (const int64_t row : {0, 1}) {
      std::string prompt = golden_ids(expected, "generate.prompt", row);
      prompt = prompt.substr(1, prompt.size() - 2);
      both += prompt + "\n";
      write_file_atomic(directory_ / "ids", prompt + "\n");
      const Outcome alone = deltazero("generate " + model(name) + options);
      ASSERT_EQ(alone.code, 0) << alone.text;
      const std::string wanted = R"({"sequences":[{"prompt":[)" + prompt + R"(],"tokens":)" + golden_ids(expected, "generate.tokens", row) + "}]}\n";
      EXPECT_EQ(alone.text, wanted);
    }
    write_file_atomic(directory_ / "ids", both);
    const nlohmann::json batch = nlohmann::json::parse(deltazero("generate " + model(name) + options).text)["sequences"];
    ASSERT_EQ(batch.size(), 2u);
    for (const size_t row : {0u, 1u}) EXPECT_EQ(batch[row]["tokens"].dump(), golden_ids(expected, "generate.tokens", static_cast<int64_t>(row)));
  }
}

TEST_F(TwoModels, GenerateRefusesIdsThatAreNone) {
  const std::string base = "generate " + model("gqa") + " --ids " + (directory_ / "ids").string() + " --max-tokens 2";
  EXPECT_EQ(deltazero(base).code, 0);
  EXPECT_EQ(deltazero(base + " --temperature 0.8 --top-k 5 --min-p 0.1").code, 0);
  EXPECT_EQ(deltazero(base + " --top-k -1").code, 78);
  EXPECT_EQ(deltazero(base + " --min-p 2").code, 78);
  EXPECT_EQ(deltazero(base + " --prompt x").code, 64) << "both";
  EXPECT_EQ(deltazero("generate " + model("gqa") + " --prompt x --json").code, 64);
  for (const char* text : {"", "1 two 3\n", "1 96\n", "-1\n"}) {
    write_file_atomic(directory_ / "ids", text);
    EXPECT_EQ(deltazero(base).code, 65) << text;
  }
  EXPECT_EQ(deltazero("generate " + model("gqa") + " --ids nowhere").code, 66);
}

}  // namespace
}  // namespace dz
