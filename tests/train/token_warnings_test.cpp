// Ids of end-of-text and padding that do not fit together are said at the start (bug reports, kind K: a copied config with another model's id).
#include "train/token_warnings.h"

#include <gtest/gtest.h>

#include <optional>

#include "runs.h"

namespace dz::train::test {
namespace {

constexpr const char* kTokenizer = R"({"added_tokens": [{"content": "<end>", "id": 100257}, {"content": "<pad>", "id": 100277}]})";
constexpr const char* kMap = R"({"eos_token": {"content": "<end>"}, "pad_token": "<pad>"})";

class TokenWarnings : public testing::Test {
 protected:
  TokenWarnings() { fs::create_directories(directory()); }
  fs::path directory() const { return temp_ / "model"; }
  void write(const std::string& name, const std::string& text) const { write_file_atomic(directory() / name, text); }
  std::vector<std::string> warnings(const std::optional<data::Vocabulary>& vocabulary) const {
    Recipe recipe;
    recipe.init = directory().string();
    return token_warnings(recipe, vocabulary ? &*vocabulary : nullptr);
  }

  TempDir temp_;
};

constexpr data::Vocabulary kDolma2{.size = 100278, .eos_id = 100257, .pad_id = 100277};

TEST_F(TokenWarnings, NothingWhenAllAgreeOrNothingIsThere) {
  EXPECT_TRUE(warnings(kDolma2).empty());
  write("tokenizer.json", kTokenizer);
  write("special_tokens_map.json", kMap);
  for (const char* ids : {R"({"eos_token_id": 100257, "pad_token_id": 100277})", R"({"eos_token_id": [0, 100257]})", "{}", "garbage"}) {
    write("config.json", ids);
    EXPECT_TRUE(warnings(kDolma2).empty()) << ids;
    EXPECT_TRUE(warnings(std::nullopt).empty()) << ids;
  }
}

TEST_F(TokenWarnings, NameEachIdThatDiffers) {
  write("tokenizer.json", kTokenizer);
  write("tokenizer_config.json", kMap);
  write("config.json", R"({"eos_token_id": 0, "pad_token_id": 1})");
  const std::string where = directory().string();
  const std::vector<std::string> beside = {where + ": config.json: eos_token_id 0, but the tokenizer's eos_token <end> is 100257",
                                           where + ": config.json: pad_token_id 1, but the tokenizer's pad_token <pad> is 100277"};
  EXPECT_EQ(warnings(std::nullopt), beside);
  std::vector<std::string> all = beside;
  all.push_back(where +
                ": config.json: eos_token_id 0, but documents of the data end with 100257, which is what the checkpoints of this run will say");
  EXPECT_EQ(warnings(kDolma2), all);
}

TEST_F(TokenWarnings, CompareTheDataWithItsTokenizer) {
  write("tokenizer.json", kTokenizer);
  write("special_tokens_map.json", kMap);
  Recipe recipe;
  recipe.data.tokens.tokenizer = (directory() / "tokenizer.json").string();
  EXPECT_TRUE(token_warnings(recipe, &kDolma2).empty());
  const data::Vocabulary wrong{.size = 100278, .eos_id = 50279, .pad_id = 1};
  EXPECT_EQ(token_warnings(recipe, &wrong),
            (std::vector<std::string>{
                directory().string() + ": recipe.data.tokens.eos_id 50279, but the tokenizer's eos_token <end> is 100257",
                directory().string() + ": recipe.data.tokens.pad_id 1, but the tokenizer's pad_token <pad> is 100277",
            }));
}

// A whole start says it, and goes on.
TEST_F(TokenWarnings, AStartSaysThemAndTrains) {
  train_contract(temp_ / "parent", {}, 1);
  const fs::path checkpoint = temp_ / "parent" / "checkpoints" / "step-1";
  for (const char* name : {"model.safetensors", "config.json"}) fs::copy_file(checkpoint / name, directory() / name);
  write("tokenizer.json", R"({"added_tokens": [{"content": "<end>", "id": 300}]})");
  write("special_tokens_map.json", kMap);
  const auto said = [&](const std::string& run) {
    testing::internal::CaptureStdout();
    train({.config = load_config(contract_config(), {"run.dir=" + (temp_ / run).string(), "recipe.init=" + directory().string()}), .stop_after = 1},
          {});
    return testing::internal::GetCapturedStdout();
  };
  nlohmann::json config = nlohmann::json::parse(read_file(directory() / "config.json"));
  config["eos_token_id"] = 300;
  write("config.json", config.dump());
  EXPECT_EQ(said("good").find("eos_token_id"), std::string::npos);
  config["eos_token_id"] = 0;
  write("config.json", config.dump());
  EXPECT_NE(said("bad").find("warning: " + directory().string() + ": config.json: eos_token_id 0, but the tokenizer's eos_token <end> is 300"),
            std::string::npos);
}

}  // namespace
}  // namespace dz::train::test
