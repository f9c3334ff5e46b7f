// deltazero index and mix against the recorded numbers of MaxText and OLMo-core, and what they refuse.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "cli/run.h"
#include "data/goldens.h"
#include "data/shards.h"
#include "data/temporary.h"

namespace dz::cli {
namespace {

using Json = nlohmann::json;

using test::deltazero;
using test::Outcome;

bool has(const Outcome& outcome, const std::string& part) { return outcome.text.find(part) != std::string::npos; }

const std::string kData = DZ_GOLDEN "/data/";

TEST(IndexVerb, PrintsTheFingerprintsOfThreeProjectsAndIsChecked) {
  const test::TemporaryDirectory directory;
  const std::string out = (directory / "index.json").string();
  const std::string make = fmt::format("index '{}tokens/part-00000?.npy' --seq 16 --tokenizer dolma2 --out {}", kData, out);
  const Outcome made = deltazero(make);
  ASSERT_EQ(made.code, 0) << made.text;
  const Json datasets = test::data_golden("datasets.json");
  for (const Json& row : datasets["datasets"]) {
    if (row["name"] != "fsl_u32") continue;
    EXPECT_TRUE(has(made, row["fingerprint"])) << made.text;
  }
  EXPECT_TRUE(has(made, "5 files   1843 tokens of uint32   113 instances of 16")) << made.text;
  EXPECT_TRUE(has(made, "contents of 5 of 5 files"));
  const Outcome checked = deltazero(fmt::format("index {} --hash yes", out));
  EXPECT_EQ(checked.code, 0) << checked.text;
  EXPECT_TRUE(has(checked, Json::parse(test::slurp(out))["fingerprint"]));
  EXPECT_EQ(deltazero(make).code, 0);  // an index may be replaced
  test::spill(out, "mine");
  EXPECT_EQ(deltazero(make).code, 73);
  EXPECT_EQ(test::slurp(out), "mine");
}

TEST(IndexVerb, WritesMaxTextsBytes) {
  const test::TemporaryDirectory directory;
  const std::string out = (directory / "index.json").string();
  const Json golden = test::data_golden("maxtext.json");
  for (const Json& row : golden["index"]) {
    const Json index = Json::parse(row["json_text"].get<std::string>());
    // Its labels come from a mix; here from one that has the same files in the folder's own name.
    std::string mix;
    for (const Json& file : index["files"]) {
      std::string path = file["path"];
      path.replace(0, 6, "{TOKENIZER}");
      mix += fmt::format("{},{}\n", file["label"].get<std::string>(), path);
    }
    test::spill(directory / "some.txt", mix);
    const bool narrow = index["dtype"] == "uint16";
    const Outcome made =
        deltazero(fmt::format("index {} --base-dir {} --tokenizer tokens --seq {} --format maxtext --dtype {} --vocab-size {} --eos 1 --out {}",
                              (directory / "some.txt").string(), kData, index["sequence_length"].get<int64_t>(), index["dtype"].get<std::string>(),
                              narrow ? 1000 : 100278, out));
    ASSERT_EQ(made.code, 0) << made.text;
    Json found = Json::parse(test::slurp(out)), expected = index;
    for (Json& file : found["files"]) file["path"] = file["path"].get<std::string>().substr(kData.size());
    for (const char* key : {"tokenizer", "fingerprint"}) found.erase(key), expected.erase(key);
    EXPECT_EQ(found, expected);
    const Outcome checked = deltazero(fmt::format("index {}", out));
    EXPECT_EQ(checked.code, 0) << checked.text;
  }
}

TEST(IndexVerb, RefusesWhatIsNotWhatItIsSaidToBe) {
  const test::TemporaryDirectory directory;
  const std::string out = " --out " + (directory / "x.json").string();
  const auto index = [&](const std::string& arguments) { return deltazero("index " + arguments + out); };
  const Outcome narrow = index(kData + "tokens/part-000000.npy --seq 8 --tokenizer gpt2");
  EXPECT_EQ(narrow.code, 65);
  EXPECT_TRUE(has(narrow, "uint32 tokens")) << narrow.text;
  EXPECT_EQ(index(kData + "tokens/part-000000.npy --seq 8 --tokenizer dolma2 --dtype uint16").code, 78);
  const Outcome dtype = index(kData + "tokens/part-000000.npy --seq 8 --tokenizer dolma2 --dtype uint23");
  EXPECT_EQ(dtype.code, 65);
  EXPECT_TRUE(has(dtype, "\"uint16\" or \"uint32\"")) << dtype.text;
  EXPECT_EQ(index(kData + "tokens/odd-size-u16.npy --seq 8 --vocab-size 1000 --eos 999 --strict").code, 65);
  const Outcome odd = index(kData + "tokens/odd-size-u16.npy --seq 8 --vocab-size 1000 --eos 999");
  EXPECT_EQ(odd.code, 0);
  EXPECT_TRUE(has(odd, "note: ") && has(odd, "the last 1 of 41 bytes")) << odd.text;
  EXPECT_EQ(index("/nonexistent --seq 8 --tokenizer dolma2").code, 66);
  EXPECT_EQ(index(kData + "tokens/u16-0.npy --seq 8").code, 64);  // nothing says what its tokens are
  EXPECT_EQ(deltazero("index " + kData + "tokens/u16-0.npy --tokenizer gpt2").code, 64);
}

// Counting shards: 40, 33, 17 and 5 tokens by 8 are 5, 4, 2 and 0 instances.
TEST(IndexVerb, ShardsSayTheirOwnWidthAndAreNotContradicted) {
  const test::TemporaryDirectory directory;
  test::write_raw(directory / "f1", test::kCountingVocab, 0, test::counting_shards(1));
  const std::string make = fmt::format("index {} --seq 8 --out {}", (directory / "f1").string(), (directory / "x.json").string());
  const Outcome made = deltazero(make);
  ASSERT_EQ(made.code, 0) << made.text;
  EXPECT_TRUE(has(made, "95 tokens of uint16   11 instances of 8")) << made.text;
  EXPECT_TRUE(has(made, "contents of 4 of 4 files"));
  EXPECT_EQ(deltazero(make + " --dtype uint16").code, 0);
  EXPECT_EQ(deltazero(make + " --dtype uint32").code, 64);
  EXPECT_EQ(deltazero(make + " --eos 1").code, 64);
  std::string bytes = test::slurp(directory / "f1/shard1.bin");
  bytes[0] ^= 1;
  test::spill(directory / "f1/shard1.bin", bytes);
  EXPECT_EQ(deltazero(make).code, 0);  // the manifest's hashes are believed
  const Outcome changed = deltazero(make + " --hash yes");
  EXPECT_EQ(changed.code, 65);
  EXPECT_TRUE(has(changed, "shard1.bin") && has(changed, "as in manifest.json")) << changed.text;
}

TEST(MixVerb, ChecksEntriesAndFiles) {
  const test::TemporaryDirectory directory;
  const std::string mix = (directory / "OLMo-mix-0925-official.txt").string();
  test::spill(mix, "# a mix\r\nweb,a/{TOKENIZER}/0.npy\r\ncode,b/{TOKENIZER}/1.npy");
  const Outcome outcome = deltazero(fmt::format("mix {} --tokenizer dolma2 --check --json", mix));
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  const Json json = Json::parse(outcome.text);
  EXPECT_EQ(json["count"], 2);
  EXPECT_EQ(json["first"], "a/allenai/dolma3-tokenizer/0.npy");
  EXPECT_EQ(json["paths_sha256"], sha256_hex("a/allenai/dolma3-tokenizer/0.npy\nb/allenai/dolma3-tokenizer/1.npy"));
  const std::string base = " --base-dir " + (directory / "").string();
  std::filesystem::create_directories(directory / "a/allenai/dolma3-tokenizer");
  test::spill(directory / "a/allenai/dolma3-tokenizer/0.npy", "12345678");
  const Outcome missing = deltazero(fmt::format("mix {} --tokenizer dolma2 --check{}", mix, base));
  EXPECT_EQ(missing.code, 66);
  EXPECT_TRUE(has(missing, "1.npy")) << missing.text;
  test::spill(mix, "web,a/0.npy\n");
  const Outcome bad = deltazero(fmt::format("mix {} --tokenizer dolma2 --check", mix));
  EXPECT_EQ(bad.code, 65);
  EXPECT_TRUE(has(bad, mix + ":1:")) << bad.text;
  EXPECT_EQ(deltazero(fmt::format("mix {} --tokenizer dolma2", mix)).code, 64);
}

TEST(MixVerb, AllocatesAsOlmoCoreDoesAndSampled) {
  const Json golden = test::data_golden("vsl_mixture.json");
  const Json& row = golden["mixture_dataset"];
  const test::TemporaryDirectory directory;
  Json spec = {{"dialect", "olmo-core"},
               {"requested_tokens", row["requested_tokens"]},
               {"sequence_length", row["sequence_length"]},
               {"global_batch_size", row["global_batch_size"]},
               {"sources", Json::array()}};
  for (const Json& source : row["sources"]) {
    Json paths = Json::array();
    for (const std::string path : source[3]) paths.push_back(kData + path);
    spec["sources"].push_back({{"source_name", source[0]}, {"target_ratio", source[1]}, {"max_repetition_ratio", source[2]}, {"paths", paths}});
  }
  test::spill(directory / "mix.txt", "web,{TOKENIZER}/0.npy\n");
  test::spill(directory / "spec.json", spec.dump());
  const std::string command =
      fmt::format("mix {} --tokenizer dolma2 --allocate {} --json", (directory / "mix.txt").string(), (directory / "spec.json").string());
  const Outcome olmo = deltazero(command);
  ASSERT_EQ(olmo.code, 0) << olmo.text;
  const Json found = Json::parse(olmo.text);
  EXPECT_EQ(found["fingerprint"], row["fingerprint"]);
  ASSERT_EQ(found["entries"].size(), row["entries"].size());
  for (size_t i = 0; i < found["entries"].size(); ++i) EXPECT_EQ(found["entries"][i]["tokens"], row["entries"][i][2]);
  spec["dialect"] = "sampled";
  test::spill(directory / "spec.json", spec.dump());
  const Outcome sampled = deltazero(command);
  ASSERT_EQ(sampled.code, 0) << sampled.text;
  EXPECT_EQ(Json::parse(sampled.text)["instances"], 40);
  spec["requested_tokens"] = 64000;
  test::spill(directory / "spec.json", spec.dump());
  const Outcome large = deltazero(command);
  EXPECT_EQ(large.code, 78);
  EXPECT_TRUE(has(large, "1000 instances needed, 46 possible")) << large.text;
}

TEST(MixVerb, SourcesMayNameLabelsOfTheMix) {
  const test::TemporaryDirectory directory;
  test::spill(directory / "mix.txt", "web,{TOKENIZER}/part-000000.npy\ncode,{TOKENIZER}/part-000001.npy\nweb,{TOKENIZER}/part-000002.npy\n");
  const std::string spec =
      "requested_tokens: 640\nsequence_length: 16\nbatch_tokens: 64\nsources:\n  - {name: web, ratio: 0.5}\n  - {name: x, ratio: 0.5, labels: "
      "[code]}\n";
  test::spill(directory / "spec.yaml", spec);
  const std::string command = fmt::format("mix {} --tokenizer tokens --vocab-size 100278 --eos 100257 --base-dir {} --json --allocate {}",
                                          (directory / "mix.txt").string(), kData, (directory / "spec.yaml").string());
  const Outcome outcome = deltazero(command);
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  const Json json = Json::parse(outcome.text);
  EXPECT_EQ(json["sources"][0]["files"].size(), 2U);
  EXPECT_EQ(json["sources"][1]["files"][0]["instances"], 20);
  test::spill(directory / "spec.yaml", spec + "  - {name: nobody, ratio: 0.1}\n");
  EXPECT_EQ(deltazero(command).code, 78);
}

}  // namespace
}  // namespace dz::cli
