// convert as a person runs it: output, options, exit codes, memory; and that what it writes is used by the other verbs.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "cli/run.h"

namespace dz {
namespace {

using test::deltazero;
using test::Outcome;

std::string model(const std::string& name) { return std::string(DZ_GOLDEN) + "/model/" + name; }

class ConvertVerb : public ::testing::Test {
 protected:
  ConvertVerb() {
    std::string name = (fs::temp_directory_path() / "dz-convert-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
  }
  ~ConvertVerb() override { fs::remove_all(directory_); }
  std::string at(const std::string& name) const { return (directory_ / name).string(); }

  fs::path directory_;
};

TEST_F(ConvertVerb, SaysWhatItDid) {
  const Outcome outcome = deltazero("convert " + model("gqa") + " " + at("native"));
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("moments 0, step 0: Hugging Face files have none"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("every tensor was read back"), std::string::npos) << outcome.text;
  const Outcome back = deltazero("convert " + at("native") + " " + at("hf") + " --json --max-shard-size 50KB");
  ASSERT_EQ(back.code, 0) << back.text;
  const nlohmann::json json = nlohmann::json::parse(back.text);
  EXPECT_EQ(json["from"], "native");
  EXPECT_EQ(json["to"], "hf");
  EXPECT_EQ(json["out_types"], nlohmann::json::array({"BF16"}));
  EXPECT_GT(json["files"], 1);
}

TEST_F(ConvertVerb, ExitCodes) {
  EXPECT_EQ(deltazero("convert " + model("nowhere") + " " + at("out")).code, 66);
  EXPECT_EQ(deltazero("convert " + model("gqa") + " " + directory_.parent_path().string()).code, 73);
  EXPECT_EQ(deltazero("convert " + model("gqa") + " " + at("out") + " --dtype bf16").code, 78);
  EXPECT_EQ(deltazero("convert " + model("gqa") + " " + at("out") + " --dtype fp8").code, 64);
  EXPECT_EQ(deltazero("convert " + model("gqa") + " " + at("out") + " --max-shard-size 5gb").code, 64);
  EXPECT_EQ(deltazero("convert " + model("gqa") + " " + at("out") + " --max-shard-size 99999999999TB").code, 64);
  EXPECT_EQ(deltazero("convert " + model("gqa")).code, 64);
  EXPECT_EQ(deltazero("convert " + model("gqa/model.safetensors") + " " + at("out")).code, 66) << "no config.json";
  EXPECT_TRUE(fs::is_empty(directory_));
}

// Positions 0 to 95 with windows of 5: a wrong layout of heads or rotary pairs would show from position 1 on.
TEST_F(ConvertVerb, LogitsAreTheSameOnBothSides) {
  ASSERT_EQ(deltazero("convert " + model("gqa") + " " + at("native")).code, 0);
  ASSERT_EQ(deltazero("convert " + at("native") + " " + at("hf")).code, 0);
  for (const std::string& path : {at("native"), at("hf")}) {
    const Outcome outcome = deltazero("parity " + path + " --golden " + model("gqa/expected.safetensors"));
    EXPECT_EQ(outcome.code, 0) << outcome.text;
  }
  EXPECT_EQ(deltazero("inspect " + at("native")).code, 0);
}

TEST_F(ConvertVerb, GreedyTokensAreTheSameOnBothSides) {
  fs::create_directories(at("hf"));
  for (const char* file : {"config.json", "model.safetensors"}) fs::copy(model("base") + "/" + file, at("hf") + "/" + file);
  fs::copy(std::string(DZ_GOLDEN) + "/tokenizer/code-512.json", at("hf/tokenizer.json"));
  ASSERT_EQ(deltazero("convert " + at("hf") + " " + at("native")).code, 0);
  ASSERT_EQ(deltazero("convert " + at("native") + " " + at("back")).code, 0);
  const std::string options = " --prompt 'int main' --max-tokens 20";
  const Outcome before = deltazero("generate " + at("hf") + options);
  ASSERT_EQ(before.code, 0) << before.text;
  EXPECT_EQ(deltazero("generate " + at("native") + options).text, before.text);
  EXPECT_EQ(deltazero("generate " + at("back") + options).text, before.text);
}

// Largest resident set in bytes of the program with these arguments; -1 when it fails.
int64_t peak_of(const std::vector<std::string>& arguments) {
  std::vector<char*> pointers;
  std::vector<std::string> all{DZ_BINARY};
  all.insert(all.end(), arguments.begin(), arguments.end());
  for (std::string& argument : all) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::execv(DZ_BINARY, pointers.data());
    ::_exit(127);
  }
  int status = 0;
  struct rusage usage {};
  if (::wait4(child, &status, 0, &usage) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) return -1;
  return int64_t{usage.ru_maxrss} * 1024;
}

// A tensor of 384 MiB as float32: it passes through in pieces of 16 MiB, so the process never holds half of it.
TEST_F(ConvertVerb, MemoryDoesNotGrowWithTheModel) {
  if (DZ_SANITIZED) GTEST_SKIP() << "sanitizers have their own memory";
  const int64_t vocab = int64_t{6} << 20, width = 16;
  fs::create_directories(at("hf"));
  nlohmann::json config = nlohmann::json::parse(read_file(model("tied") + "/config.json"));
  config.update({{"vocab_size", vocab},
                 {"hidden_size", width},
                 {"intermediate_size", 16},
                 {"num_attention_heads", 1},
                 {"num_key_value_heads", 1},
                 {"head_dim", width},
                 {"num_hidden_layers", 1},
                 {"layer_types", {"full_attention"}},
                 {"bos_token_id", nullptr}});
  write_file_atomic(at("hf/config.json"), config.dump());
  nlohmann::ordered_json header;
  int64_t end = 0;
  const auto add = [&](const std::string& name, const std::vector<int64_t>& shape) {
    int64_t bytes = 2;
    for (const int64_t size : shape) bytes *= size;
    header[name] = {{"dtype", "BF16"}, {"shape", shape}, {"data_offsets", {end, end + bytes}}};
    end += bytes;
  };
  add("model.embed_tokens.weight", {vocab, width});
  add("model.norm.weight", {width});
  for (const char* name :
       {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"})
    add(std::string("model.layers.0.") + name + ".weight", {width, width});
  for (const char* name : {"self_attn.q_norm", "self_attn.k_norm", "post_attention_layernorm", "post_feedforward_layernorm"})
    add(std::string("model.layers.0.") + name + ".weight", {width});
  const std::string text = header.dump();
  const uint64_t length = text.size();
  {
    File file = File::create(at("hf/model.safetensors"));
    file.write(std::as_bytes(std::span(&length, 1)));
    file.write(text);
    file.truncate(8 + static_cast<int64_t>(length) + end);  // zeros that take no room
  }
  const int64_t limit = int64_t{160} << 20;
  ASSERT_GT(vocab * width * 2, limit) << "a program that held the tensor would be noticed";
  const int64_t peak = peak_of({"convert", at("hf"), at("native"), "--json"});
  EXPECT_GT(peak, 0);
  EXPECT_LT(peak, limit);
  const int64_t back = peak_of({"convert", at("native"), at("back"), "--json"});
  EXPECT_GT(back, 0);
  EXPECT_LT(back, limit);
}

}  // namespace
}  // namespace dz
