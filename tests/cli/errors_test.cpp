// What a user can do wrong, through the program: one clear message on stderr and the documented exit code.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/file.h"
#include "cli/run.h"

namespace dz {
namespace {

using test::Outcome;

Outcome run(const std::string& arguments, const std::string& before = "") { return test::deltazero(arguments, before); }

class Errors : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string pattern = (fs::temp_directory_path() / "dz-errors-XXXXXX").string();
    root() = ::mkdtemp(pattern.data());
    contract() = (fs::path(DZ_SOURCE) / "configs" / "contract.yaml").string();
    ASSERT_EQ(run("train " + contract() + " --dir " + at("run") + " --stop-after 2 --set run.checkpoint_every=1").code, 0);
    std::ofstream(at("corpus.txt")) << std::string(2000, 'a') << "\n\nthe quick brown fox jumps over the lazy dog\n";
    ASSERT_EQ(run("tokenizer-train --input " + at("corpus.txt") + " --vocab 300 --out " + at("tokenizer.json")).code, 0);
    fs::create_directory(at("text"));
    for (int i = 0; i < 40; ++i)
      std::ofstream(at("text/" + std::to_string(i) + ".txt"))
          << "document " << i << " the quick brown fox " << std::string(200, static_cast<char>('a' + i % 26));
    ASSERT_EQ(run("tokenize --tokenizer " + at("tokenizer.json") + " --input " + at("text") + " --out " + at("shards") + " --held-out 0.2").code, 0);
  }
  static void TearDownTestSuite() { fs::remove_all(root()); }
  static fs::path& root() {
    static fs::path path;
    return path;
  }
  static std::string& contract() {
    static std::string path;
    return path;
  }
  static std::string at(const std::string& name) { return (root() / name).string(); }
  static std::string train(const std::string& more) { return "train " + contract() + " --dir " + at("other") + " " + more; }
  static std::string on_shards(const std::string& shards, const std::string& more = "") {
    return train("--set recipe.data.source=shards --set recipe.data.shards=" + shards +
                 " --set recipe.model.vocab_size=331 --set recipe.data.sequence_length=32 " + more);
  }
  static void expect(const std::string& arguments, int code, const std::string& says, const std::string& before = "") {
    const Outcome ran = run(arguments, before);
    EXPECT_EQ(ran.code, code) << arguments << "\n" << ran.text;
    EXPECT_NE(ran.text.find(says), std::string::npos) << arguments << "\nexpected to read: " << says << "\n" << ran.text;
    EXPECT_EQ(ran.text.find("please report this"), std::string::npos) << ran.text;
  }
  static void write(const std::string& name, const std::string& text) { std::ofstream(at(name), std::ios::binary) << text; }
  static std::string copy_of(const std::string& from, const std::string& to) {
    fs::remove_all(at(to));
    fs::copy(at(from), at(to), fs::copy_options::recursive);
    return at(to);
  }
  static fs::path shard(const std::string& directory) {
    for (const auto& entry : fs::directory_iterator(directory)) {
      if (entry.path().extension() == ".npy" && entry.path().string().find("train") != std::string::npos) return entry.path();
    }
    return {};
  }
  static void flip_byte(const fs::path& path, int64_t offset) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(offset);
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(offset);
    file.put(byte);
  }
};

TEST_F(Errors, CommandLine) {
  expect("", 64, "subcommand");
  expect("trian", 64, "did you mean: train");
  expect("train --no-such-flag", 64, "no-such-flag");
  expect("train", 64, "config file");
  expect(train("--set recipe.steps"), 64, "section.key=value");
  expect(train("--stop-after -3"), 64, "stop-after");
}

TEST_F(Errors, Configuration) {
  expect("train " + at("missing.yaml"), 66, "missing.yaml");
  expect("train " + root().string(), 66, "a directory");
  write("bad.yaml", "recipe: {steps: [1\n");
  expect("train " + at("bad.yaml") + " --dir " + at("other"), 78, "not valid YAML");
  expect(train("--set recipe.stepz=4"), 78, "did you mean: recipe.steps");
  expect(train("--set recipe.steps=many"), 78, "found many");
  expect(train("--set topology.micro_batch=0"), 78, "topology.micro_batch");
  expect(train("--set recipe.model.n_kv_heads=4"), 78, "n_kv_heads");
  expect(train("--set recipe.model.head_dim=25"), 78, "head_dim");
  expect(train("--set recipe.data.sequence_length=1000000"), 78, "sequence_length");
  expect(train("--set recipe.batch=100000"), 78, "100000");
  expect(train("--set recipe.numerics=cpu-v9"), 78, "cpu-v9");
  expect(train("--set recipe.schedule.warmup=4000"), 78, "warmup");
  expect(train("--set recipe.optimizer.no_decay=[model.embed_tokns.weight]"), 78, "embed_tokns");
  expect(train(""), 78, "not available on this CPU", "DZ_ISA=avx4096");
}

TEST_F(Errors, Data) {
  expect(on_shards(at("nowhere")), 66, "nowhere");
  expect(on_shards(at("shards"), "--set recipe.model.vocab_size=200"), 78, "vocab");
  expect(on_shards(at("shards"), "--set recipe.data.sequence_length=4000000"), 78, "sequence_length");
  const std::string truncated = copy_of("shards", "truncated");
  fs::resize_file(shard(truncated), fs::file_size(shard(truncated)) - 2);
  expect(on_shards(truncated), 65, shard(truncated).filename().string());
  const std::string flipped = copy_of("shards", "flipped");
  flip_byte(shard(flipped), 100);
  expect(on_shards(flipped), 65, shard(flipped).filename().string());
  const std::string manifest = copy_of("shards", "manifest");
  fs::resize_file(fs::path(manifest) / "manifest.json", 40);
  expect(on_shards(manifest), 65, "manifest.json");
}

TEST_F(Errors, OtherDataUnderTheSameName) {
  const std::string data = copy_of("shards", "swapped");
  const std::string first = on_shards(data, "--stop-after 1");
  fs::remove_all(at("other"));
  ASSERT_EQ(run(first).code, 0);
  fs::remove_all(data);
  ASSERT_EQ(run("tokenize --tokenizer " + at("tokenizer.json") + " --input shards=" + at("text") + " --held-out 0.6 --out " + data).code, 0);
  expect(on_shards(data, "--stop-after 2"), 78, "recipe.data.digest");
  fs::remove_all(at("other"));
}

TEST_F(Errors, Runs) {
  write("file", "not a directory");
  expect("train " + contract() + " --dir " + at("file") + "/run", 73, "file");
  expect("train " + contract() + " --dir " + at("run") + " --set recipe.seed=3", 78, "recipe.seed");
  expect("train " + contract() + " --dir " + at("run") + " --set recipe.model.d_model=48 --set recipe.model.head_dim=8", 78, "recipe.model.d_model");
  expect("train " + contract() + " --dir " + at("forked") + " --fork " + at("nowhere"), 66, "nowhere");
  expect("train " + contract() + " --dir " + at("run") + " --fork " + at("run/checkpoints/step-1"), 78, "--fork");
  expect("train " + contract() + " --dir " + at("forked") + " --fork " + at("run/checkpoints/step-1") + " --set recipe.model.d_model=48", 78,
         "checkpoint of another model");
}

TEST_F(Errors, DamagedCheckpoints) {
  const std::string one = copy_of("run", "one-bad");
  flip_byte(fs::path(one) / "checkpoints/step-2/model.safetensors", 5000);
  const Outcome resumed = run("train " + contract() + " --dir " + one + " --stop-after 3");
  EXPECT_EQ(resumed.code, 0) << resumed.text;
  EXPECT_NE(resumed.text.find("step-2 skipped"), std::string::npos) << resumed.text;
  EXPECT_NE(resumed.text.find("model.safetensors"), std::string::npos) << resumed.text;
  const std::string all = copy_of("run", "all-bad");
  for (const char* step : {"step-1", "step-2"}) fs::remove(fs::path(all) / "checkpoints" / step / "manifest.json");
  expect("train " + contract() + " --dir " + all, 65, "--fresh");
  const std::string state = copy_of("run", "no-trainer");
  for (const char* step : {"step-1", "step-2"}) fs::remove(fs::path(state) / "checkpoints" / step / "trainer.json");
  expect("train " + contract() + " --dir " + state, 65, "trainer.json");
}

TEST_F(Errors, ReadingVerbs) {
  expect("inspect " + at("nowhere"), 66, "nowhere");
  expect("verify " + at("run") + " " + at("nowhere"), 66, "nowhere");
  expect("report " + at("nowhere"), 66, "nowhere");
  expect("eval loss " + at("nowhere") + " --tokens " + at("shards"), 66, "nowhere");
  expect("eval loss " + at("run") + " --tokens " + at("shards") + " --split validation", 64, "validation");
  expect("generate " + at("nowhere") + " --prompt a", 66, "nowhere");
  expect("parity " + at("run") + " --golden " + at("nowhere"), 66, "nowhere");
  write("broken.json", "{\"model\": {\"type\": \"BPE\", ");
  expect("tokenize --tokenizer " + at("broken.json") + " --input " + at("text") + " --out " + at("out"), 65, "broken.json");
  expect("tokenize --tokenizer " + at("tokenizer.json") + " --input " + at("nowhere") + " --out " + at("out"), 66, "nowhere");
  expect("tokenize --tokenizer " + at("tokenizer.json") + " --input " + at("text") + " --out " + at("text"), 73, "text");
}

TEST_F(Errors, WhatIsNotOursIsNotTouched) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  expect("tokenizer-train --input " + at("corpus.txt") + " --vocab 300 --out " + at("pipe"), 73, "a special file");
  EXPECT_TRUE(fs::is_fifo(at("pipe")));
  expect("inspect " + at("pipe"), 66, "pipe");
  fs::create_directory(at("mine"));
  write("mine/recipe.yaml", "mine");
  expect("train " + contract() + " --dir " + at("mine"), 73, "files that are not a run");
  EXPECT_EQ(read_file(at("mine/recipe.yaml")), "mine");
  expect("train " + contract() + " --dir " + at("run/checkpoints/step-2"), 73, "files that are not a run");
  const std::string lost = copy_of("run", "lost");
  fs::remove_all(fs::path(lost) / "checkpoints");
  expect("train " + contract() + " --dir " + lost + " --stop-after 1", 0, "metrics.jsonl.old");
  EXPECT_TRUE(fs::exists(fs::path(lost) / "metrics.jsonl.old"));
}

TEST_F(Errors, EmptyAndOddValues) {
  expect("train " + contract() + " --dir ''", 64, "--dir: found an empty value");
  expect("tokenize --tokenizer " + at("tokenizer.json") + " --input " + at("text") + " --out " + at("out") + " --held-out nan", 64, "held-out");
  expect(train("--set recipe.steps=2000000000000000000"), 78, "from 1 to 1000000000000000");
  write("two.yaml", read_file(contract()) + "\n---\nrecipe: {seed: 7}\n");
  expect("train " + at("two.yaml") + " --dir " + at("other"), 78, "2 YAML documents");
  EXPECT_EQ(run("inspect " + at("run") + " --json > /dev/full").code, 74);
  EXPECT_EQ(run("train --help-config > /dev/full").code, 74);  // more than a buffer holds
  expect(train("--set recipe.data.sequence_length=1048577"), 78, "from 2 to 1048576");
  const std::string flipped = copy_of("shards", "flipped-held-out");
  for (const auto& entry : fs::directory_iterator(flipped)) {
    if (entry.path().string().find("held-out-") != std::string::npos && entry.path().extension() == ".npy") flip_byte(entry.path(), 20);
  }
  expect("eval loss " + at("run") + " --tokens " + flipped + " --sequence-length 16", 65, "held-out-00000.npy");
}

// Nothing is written to a full disk; /dev/full stands for one.
TEST_F(Errors, FullDisk) { expect("tokenizer-train --input " + at("corpus.txt") + " --vocab 300 --out /dev/full/x.json", 73, "/dev/full"); }

}  // namespace
}  // namespace dz
