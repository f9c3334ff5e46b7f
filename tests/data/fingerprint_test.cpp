#include "data/fingerprint.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "data/goldens.h"

namespace dz::data {
namespace {

using nlohmann::json;

int64_t argument(const json& args, const char* name) { return args.value(name, int64_t{-1}); }

std::vector<FingerprintFile> files_of(const json& row) {
  std::vector<FingerprintFile> files;
  for (const std::string path : row["paths"]) files.push_back({path, static_cast<int64_t>(std::filesystem::file_size(DZ_GOLDEN "/data/" + path))});
  return files;
}

Vocabulary vocabulary_of(const json& args) {
  return {.size = argument(args, "vocab_size"),
          .eos_id = argument(args, "eos_token_id"),
          .pad_id = argument(args, "pad_token_id"),
          .bos_id = argument(args, "bos_token_id")};
}

TEST(Fingerprint, IsThatOfOlmoCoreForEveryFixedDataset) {
  int rows = 0;
  const json golden = test::data_golden("datasets.json");
  for (const json& row : golden["datasets"]) {
    if (row["class"] != "NumpyFSLDataset") continue;
    const json& args = row["args"];
    const FingerprintFields fields = fixed_fields(vocabulary_of(args), args["dtype"] == "uint16" ? TokenType::kUint16 : TokenType::kUint32,
                                                  args.value("max_target_sequence_length", int64_t{0}));
    EXPECT_EQ(row["fingerprint_version"], kOlmoCoreFingerprintVersion);
    EXPECT_EQ(olmo_core_fingerprint("NumpyFSLDataset", fields, files_of(row)), row["fingerprint"]) << row["name"];
    ++rows;
  }
  EXPECT_GE(rows, 8);
}

TEST(Fingerprint, PaddedDatasetAddsItsLength) {
  const json golden = test::data_golden("datasets.json");
  for (const json& row : golden["datasets"]) {
    if (row["name"] != "padded") continue;
    FingerprintFields fields = fixed_fields(vocabulary_of(row["args"]), TokenType::kUint16, 0);
    EXPECT_NE(olmo_core_fingerprint("NumpyPaddedFSLDataset", fields, files_of(row)), row["fingerprint"]);
    fields.emplace_back("sequence_length", "16");
    EXPECT_EQ(olmo_core_fingerprint("NumpyPaddedFSLDataset", fields, files_of(row)), row["fingerprint"]);
  }
}

TEST(Fingerprint, OlmoCoreCoversNamesSizesAndOrderButNoDirectory) {
  const FingerprintFields fields = fixed_fields({.size = 100278, .eos_id = 100257, .pad_id = 100277}, TokenType::kUint32, 8192);
  const auto of = [&](const std::vector<FingerprintFile>& files) { return olmo_core_fingerprint("NumpyFSLDataset", fields, files); };
  const std::string expected = "37214777916f4454f4022d95f2f8dc48bfb74579f829e47f45664b3365481fec";
  EXPECT_EQ(of({{"000000.npy", 65536}, {"000001.npy", 32768}}), expected);
  EXPECT_EQ(of({{"/elsewhere/a/000000.npy", 65536}, {"s3://b/000001.npy", 32768}}), expected);
  EXPECT_NE(of({{"000001.npy", 32768}, {"000000.npy", 65536}}), expected);
  EXPECT_NE(of({{"000000.npy", 65536}, {"000001.npy", 32772}}), expected);
  EXPECT_NE(of({{"000000.npy", 65536}, {"000002.npy", 32768}}), expected);
}

TEST(Fingerprint, IsThatOfMaxText) {
  const json golden = test::data_golden("maxtext.json");
  const std::vector<FingerprintFile> files = {{"a.npy", 10}, {"b.npy", 8}};
  EXPECT_EQ(maxtext_fingerprint(8, "uint32", "tok", files), golden["fingerprint_example"]);
  for (const json& row : golden["index"]) {
    const json index = json::parse(row["json_text"].get<std::string>());
    std::vector<FingerprintFile> entries;
    for (const json& file : index["files"]) entries.push_back({file["path"], file["n_tokens"]});
    const auto of = [&](int64_t length) {
      return maxtext_fingerprint(length, std::string(index["dtype"]), std::string(index["tokenizer"]), entries);
    };
    EXPECT_EQ(of(index["sequence_length"]), index["fingerprint"]) << row["name"];
    EXPECT_NE(of(index["sequence_length"].get<int64_t>() + 1), index["fingerprint"]);
    entries.back().path.insert(0, "/");
    EXPECT_NE(of(index["sequence_length"]), index["fingerprint"]);
  }
}

}  // namespace
}  // namespace dz::data
