// parity and generate as a person runs them: output, errors and exit codes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/file.h"
#include "cli/run.h"

namespace dz {
namespace {

using test::deltazero;
using test::Outcome;

std::string model(const std::string& name) { return std::string(DZ_GOLDEN) + "/model/" + name; }

TEST(ParityVerb, PrintsEveryPairAsJson) {
  const Outcome outcome = deltazero("parity " + model("gqa") + " --golden " + model("gqa/expected.safetensors") + " --json");
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  const nlohmann::json pairs = nlohmann::json::parse(outcome.text)["pairs"];
  ASSERT_EQ(pairs.size(), 4u);
  EXPECT_EQ(pairs[0]["name"], "T1");
  for (const nlohmann::json& pair : pairs) {
    EXPECT_LT(pair["mean_kl"], 1e-9);
    EXPECT_LT(pair["max_kl"], 1e-9);
    EXPECT_LT(pair["max_abs"], 6e-5);
    EXPECT_EQ(pair["top1_agreement"], 1.0);
  }
}

TEST(ParityVerb, ExitCodes) {
  const std::string base = "parity " + model("base") + " --golden ";
  EXPECT_EQ(deltazero(base + model("base/expected.safetensors") + " --dtype bf16").code, 0);
  const Outcome strict = deltazero(base + model("base/expected.safetensors") + " --dtype bf16 --max-kl 1e-9");
  EXPECT_EQ(strict.code, 1) << strict.text;
  EXPECT_NE(strict.text.find("DIFFERENT"), std::string::npos) << strict.text;
  EXPECT_EQ(deltazero(base + model("base/grads.safetensors")).code, 2);
  EXPECT_EQ(deltazero(base + model("gqa/expected.safetensors")).code, 65) << "logits of another vocabulary";
  EXPECT_EQ(deltazero(base + model("base/config.json")).code, 65) << "not a safetensors file";
  EXPECT_EQ(deltazero(base + model("nowhere.safetensors")).code, 66);
  EXPECT_EQ(deltazero(base + model("base/expected.safetensors") + " --dtype fp8").code, 64);
  EXPECT_EQ(deltazero("parity " + model("nowhere") + " --golden x").code, 66);
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

}  // namespace
}  // namespace dz
