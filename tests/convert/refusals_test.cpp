// What a conversion refuses, and that it leaves nothing behind when it fails.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include "base/error.h"
#include "checkpoint/fault.h"
#include "checkpoint/store.h"
#include "convert/models.h"
#include "convert/side_files.h"
#include "convert/tensor_file.h"

namespace dz::convert {
namespace {

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

class Refusals : public testing::Test {
 protected:
  Refusals() : model_(copy_model(scratch_, "gqa")) {}
  template <class E>
  std::string message(const Options& options) {
    const std::string text = message_of<E>([&] { convert(options, {}); });
    EXPECT_FALSE(fs::exists(scratch_ / "out"));
    EXPECT_EQ(names_in(scratch_.path()), before_);
    return text;
  }
  Options options() const { return {.in = model_, .out = scratch_ / "out"}; }
  void change_config(const std::function<void(nlohmann::json&)>& change) {
    nlohmann::json config = json_of(model_ / "config.json");
    change(config);
    write_bytes(model_ / "config.json", config.dump());
  }

  Scratch scratch_;
  fs::path model_;
  std::vector<std::string> before_ = names_in(scratch_.path());
};

TEST_F(Refusals, AnOutputThatIsThere) {
  fs::create_directories(scratch_ / "there");
  write_bytes(scratch_ / "there/file", "mine");
  EXPECT_THROW(convert({.in = model_, .out = scratch_ / "there"}, {}), CreateError);
  EXPECT_THROW(convert({.in = model_, .out = scratch_ / "there/file"}, {}), CreateError);
  fs::create_symlink(model_, scratch_ / "link");
  EXPECT_THROW(convert({.in = model_, .out = scratch_ / "link"}, {}), CreateError);
  EXPECT_THROW(convert({.in = model_, .out = model_}, {}), CreateError) << "in place";
  EXPECT_EQ(read_file(scratch_ / "there/file"), "mine");
  fs::create_directories(scratch_ / "empty");
  EXPECT_NO_THROW(convert({.in = model_, .out = (scratch_ / "empty").string() + "/"}, {}));
  EXPECT_TRUE(fs::exists(scratch_ / "empty/manifest.json"));
}

TEST_F(Refusals, AModelThatConfigDoesNotDescribe) {
  auto tensors = tensors_of(model_);
  const auto whole = tensors;
  tensors.erase("model.layers.3.mlp.up_proj.weight");
  write_tensors(model_ / "model.safetensors", tensors);
  EXPECT_NE(message<DataError>(options()).find("model.layers.3.mlp.up_proj.weight: found no such tensor"), std::string::npos);
  tensors = whole;
  tensors["model.layers.0.input_layernorm.weight"] = tensors["model.norm.weight"];
  write_tensors(model_ / "model.safetensors", tensors);
  EXPECT_NE(message<DataError>(options()).find("input_layernorm"), std::string::npos);
  tensors = whole;
  tensors["model.norm.weight"].shape = {1, tensors["model.norm.weight"].shape[0]};
  write_tensors(model_ / "model.safetensors", tensors);
  EXPECT_NE(message<DataError>(options()).find("shape [1, 32]"), std::string::npos);
  tensors = whole;
  tensors["model.norm.weight"].dtype = "I16";
  write_tensors(model_ / "model.safetensors", tensors);
  EXPECT_NE(message<DataError>(options()).find("I16"), std::string::npos);
  write_tensors(model_ / "model.safetensors", whole);
  change_config([](nlohmann::json& config) { config["vocab_size"] = 97; });
  EXPECT_NE(message<DataError>(options()).find("shape [96, 32], expected [97, 32]"), std::string::npos);
}

TEST_F(Refusals, WhatNativeCannotHold) {
  Options options = this->options();
  options.dtype = "BF16";
  EXPECT_NE(message<ConfigError>(options).find("float32 only"), std::string::npos);
  options = this->options();
  options.moments = true;
  options.to = Form::kHuggingFace;
  EXPECT_NE(message<ConfigError>(options).find("which has none"), std::string::npos);
}

TEST_F(Refusals, AnotherModelToBeLike) {
  Options options = this->options();
  options.like = golden_model("base");
  EXPECT_NE(message<ConfigError>(options).find("another model"), std::string::npos);
}

TEST_F(Refusals, ATiedHeadThatIsNotTheEmbedding) {
  const fs::path tied = copy_model(scratch_, "tied");
  auto tensors = tensors_of(tied);
  tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"];
  write_tensors(tied / "model.safetensors", tensors);
  const Report report = convert({.in = tied, .out = scratch_ / "native"}, {});
  EXPECT_NE(report.notes.at(0).find("lm_head.weight is left out"), std::string::npos);
  convert({.in = scratch_ / "native", .out = scratch_ / "hf", .max_shard_bytes = 20000}, {});
  EXPECT_EQ(tensors_of(scratch_ / "hf"), tensors_of(golden_model("tied")));
  EXPECT_FALSE(json_of(scratch_ / "hf/model.safetensors.index.json")["weight_map"].contains("lm_head.weight"));
  tensors["lm_head.weight"].bytes[0] ^= 1;
  write_tensors(tied / "model.safetensors", tensors);
  EXPECT_NE(message_of<DataError>([&] { run(tied, scratch_ / "again"); }).find("another tensor than the embedding"), std::string::npos);
}

TEST_F(Refusals, ADamagedCheckpoint) {
  run(model_, scratch_ / "native");
  flip_bit(scratch_ / "native/model.safetensors", read_file(scratch_ / "native/model.safetensors").size() - 2);
  EXPECT_NE(message_of<CheckpointError>([&] { run(scratch_ / "native", scratch_ / "hf"); }).find("digest"), std::string::npos);
  EXPECT_FALSE(fs::exists(scratch_ / "hf"));
  fs::remove(scratch_ / "native/manifest.json");
  EXPECT_THROW(run(scratch_ / "native", scratch_ / "hf"), CheckpointError);
}

// Each file-system operation of both directions fails once: nothing is left, and the next attempt succeeds.
TEST_F(Refusals, AFailureAnywhereLeavesNothing) {
  run(model_, scratch_ / "native");
  for (const bool back : {false, true}) {
    const Options options{.in = back ? scratch_ / "native" : model_, .out = scratch_ / "out", .max_shard_bytes = 30000};
    const std::vector<std::string> before = names_in(scratch_.path());
    int failures = 0;
    for (int k = 1; k < 1000; ++k) {
      ::setenv("DZ_TEST_CRASH", ("fail:" + std::to_string(k)).c_str(), 1);
      bool failed = false;
      try {
        convert(options, {});
      } catch (const IoError& error) {
        failed = true;
        ++failures;
        const std::string text = error.what();
        EXPECT_NE(text.find("needed "), std::string::npos) << text;
        EXPECT_NE(text.find("free now "), std::string::npos) << text;
      }
      ::unsetenv("DZ_TEST_CRASH");
      if (!failed) break;
      if (!fs::exists(scratch_ / "out")) {
        EXPECT_EQ(names_in(scratch_.path()), before) << k;
      } else {  // the very last operation, the sync of the parent after the rename
        fs::remove_all(scratch_ / "out");
      }
    }
    EXPECT_GT(failures, 20) << "back " << back;
    EXPECT_TRUE(fs::exists(scratch_ / "out"));
    fs::remove_all(scratch_ / "out");
  }
}

TEST_F(Refusals, AFullDiskIsToldWithSizes) {
  struct rlimit before {};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  struct rlimit low = before;
  low.rlim_cur = 40000;
  ::setrlimit(RLIMIT_FSIZE, &low);
  std::string text;
  try {
    convert(options(), {});
  } catch (const IoError& error) {
    text = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  EXPECT_NE(text.find("needed "), std::string::npos) << text;
  EXPECT_EQ(names_in(scratch_.path()), before_);
}

TEST_F(Refusals, WhatADeadProcessLeftIsRemoved) {
  fs::create_directories(scratch_ / ".out.tmp-1");
  write_bytes(scratch_ / ".out.tmp-1/model.safetensors", "half");
  fs::create_directories(scratch_ / ".out.tmp-mine");
  convert(options(), {});
  EXPECT_FALSE(fs::exists(scratch_ / ".out.tmp-1"));
  EXPECT_TRUE(fs::exists(scratch_ / ".out.tmp-mine")) << "not a name of ours";
}

TEST_F(Refusals, LinksOutOfTheDirectoryAreNotFollowed) {
  write_bytes(scratch_ / "secret", "x");
  write_bytes(model_ / "inside.txt", "y");
  fs::create_symlink(scratch_ / "secret", model_ / "tokenizer.json");
  fs::create_symlink("inside.txt", model_ / "link.txt");
  fs::create_symlink("nowhere", model_ / "dangling.txt");
  const SideFiles found = find_side_files(model_);
  EXPECT_EQ(found.names, (std::vector<std::string>{"inside.txt", "link.txt"}));
  ASSERT_EQ(found.notes.size(), 2u);
  EXPECT_NE(found.notes[1].find("tokenizer.json is left out: a link that leads out"), std::string::npos);
}

TEST_F(Refusals, TheCacheOfTheHubIsALayoutOfLinks) {
  const fs::path repository = scratch_ / "models--a--b", snapshot = repository / "snapshots/1";
  fs::create_directories(snapshot);
  fs::create_directories(repository / "blobs");
  for (const char* name : {"config.json", "model.safetensors"}) {
    fs::copy(model_ / name, repository / "blobs" / (std::string("hash-of-") + name));
    fs::create_symlink(fs::path("../../blobs") / (std::string("hash-of-") + name), snapshot / name);
  }
  write_bytes(repository / "blobs/t", "{}");
  fs::create_symlink("../../blobs/t", snapshot / "tokenizer.json");
  run(snapshot, scratch_ / "native");
  EXPECT_EQ(read_file(scratch_ / "native/tokenizer.json"), "{}");
}

TEST_F(Refusals, SideFilesThatANativeCheckpointCannotHoldAreNamed) {
  write_bytes(model_ / "recipe.yaml", "x");
  const Report report = convert(options(), {});
  EXPECT_NE(report.notes.at(0).find("recipe.yaml is left out"), std::string::npos);
}

TEST_F(Refusals, ModeIsAsTheUmaskSays) {
  convert({.in = model_, .out = scratch_ / "hf", .to = Form::kHuggingFace}, {});
  const mode_t mask = ::umask(0);
  ::umask(mask);
  const auto expected = static_cast<fs::perms>(0644 & ~mask);
  for (const char* name : {"model.safetensors", "config.json"}) EXPECT_EQ(fs::status(scratch_ / "hf" / name).permissions(), expected) << name;
}

TEST_F(Refusals, AnotherEndOfTextThanTheTokenizersIsTold) {
  change_config([](nlohmann::json& config) {
    config["eos_token_id"] = {1, 7};
    config["pad_token_id"] = 3;
  });
  write_bytes(model_ / "tokenizer.json", R"({"added_tokens": [{"id": 7, "content": "<end>"}, {"id": 3, "content": "<pad>"}, {"id": "x"}, 5]})");
  write_bytes(model_ / "special_tokens_map.json", R"({"eos_token": {"content": "<end>"}, "pad_token": "<pad>"})");
  EXPECT_TRUE(convert(options(), {}).warnings.empty()) << "one of several is enough";
  change_config([](nlohmann::json& config) { config["eos_token_id"] = 0; });
  const std::vector<std::string> warnings = convert({.in = model_, .out = scratch_ / "out2"}, {}).warnings;
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0], "config.json: eos_token_id 0, but the tokenizer's eos_token <end> is 7");
  write_bytes(model_ / "tokenizer.json", "{");
  EXPECT_EQ(convert({.in = model_, .out = scratch_ / "out4"}, {}).warnings.size(), 0u) << "nothing to compare with";
}

// What the disk gives back must be what was written: one bit is enough.
TEST_F(Refusals, ADiskThatForgetsABit) {
  WrittenTensors written;
  const std::vector<float> values{1.0f, 2.0f, 3.0f};
  const fs::path path = scratch_ / "t.safetensors";
  const auto read = [&](const std::string&, const UsePiece& use) { use(values); };
  write_tensor_file(
      path, {{"a", "F32", {3}}, {"b", "BF16", {3}}}, read, [](int64_t) {}, written);
  EXPECT_NO_THROW(read_back(path, written, [](int64_t) {}));
  const size_t bytes = read_file(path).size();
  flip_bit(path, bytes - 1);
  EXPECT_NE(message_of<IoError>([&] { read_back(path, written, [](int64_t) {}); }).find("tensor \"b\": other bytes"), std::string::npos);
  flip_bit(path, bytes - 1);
  written["c"] = written["a"];
  EXPECT_NE(message_of<IoError>([&] { read_back(path, written, [](int64_t) {}); }).find("2 tensors"), std::string::npos);
}

TEST_F(Refusals, MisreadingsOfReleasedReadersAreTold) {
  change_config([](nlohmann::json& config) { config["rope_theta"] = 10000.0; });
  EXPECT_EQ(convert({.in = model_, .out = scratch_ / "hf", .to = Form::kHuggingFace}, {}).warnings.size(), 1u);
  change_config([](nlohmann::json& config) { config["rope_theta"] = 500000.0; });
  EXPECT_TRUE(convert({.in = model_, .out = scratch_ / "hf2", .to = Form::kHuggingFace}, {}).warnings.empty());
}

}  // namespace
}  // namespace dz::convert
