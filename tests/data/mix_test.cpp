#include "data/mix.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "data/goldens.h"
#include "data/temporary.h"
#include "references.h"

namespace dz::data {
namespace {

using nlohmann::json;
using test::message_of;

// Where the released mixes lie. In ai2-olmo-core 2.4.0 one of them has no file under its own name, and cannot be built there.
std::string mix_file(const std::string& name) {
  return "mixes/" + (name == "OLMo-midtraining-mix-0725-100B" ? "OLMo-midtraining-mix-0625-100B" : name) + ".txt";
}

TEST(Mix, EveryReleasedMixIsReadAsOlmoCoreReadsIt) {
  DZ_REFERENCE(path, "mixes/OLMo-mix-0625-official.txt");
  const json golden = test::data_golden("manifests.json");
  int rows = 0, unbuildable = 0;
  for (const json& row : golden["rows"]) {
    const std::string name = row["mix"], tokenizer = row["tokenizer"];
    const std::filesystem::path file = reference_path(mix_file(name));
    const MixSummary summary = summarize(parse_mix(test::slurp(file), tokenizer_folder(name, tokenizer), file.string()));
    if (row.contains("error")) {
      EXPECT_FALSE(std::filesystem::exists(reference_path("mixes/" + name + ".txt")));  // the reference's only reason
      EXPECT_EQ(summary.count, 11933);
      ++unbuildable;
      continue;
    }
    EXPECT_EQ(summary.count, row["count"]) << name;
    EXPECT_EQ(summary.paths_sha256, row["paths_sha256"]) << name << ", " << tokenizer;
    EXPECT_EQ(summary.labels_sha256, row["labels_sha256"]) << name;
    EXPECT_EQ(summary.first, row["first"]);
    EXPECT_EQ(summary.last, row["last"]);
    EXPECT_EQ(summary.duplicates, row["duplicates"]) << name;
    EXPECT_EQ(summary.basenames, row["basenames"]) << name;
    ++rows;
  }
  EXPECT_EQ(rows, 39);
  EXPECT_EQ(unbuildable, 3);
}

TEST(Mix, LineEndsCommentsAndAMissingLastNewlineMakeNoDifference) {
  const std::vector<std::string> lines = {
      "# a comment", "", "web,a/{TOKENIZER}/000000.npy", "  # another", "code,b/{TOKENIZER}/x/{TOKENIZER}/1.npy", "web,a/{TOKENIZER}/000000.npy"};
  for (const std::string end : {"\n", "\r\n", "\r", "  \t\r\n"}) {
    for (const bool last : {true, false}) {
      std::string text;
      for (size_t i = 0; i < lines.size(); ++i) text += lines[i] + (i + 1 < lines.size() || last ? end : "");
      const std::vector<MixEntry> entries = parse_mix(text, "tok", "mix");
      ASSERT_EQ(entries.size(), 3U);
      EXPECT_EQ(entries[0].label, "web");
      EXPECT_EQ(entries[0].path, "a/tok/000000.npy");
      EXPECT_EQ(entries[1].path, "b/tok/x/tok/1.npy");
      EXPECT_EQ(summarize(entries).duplicates, 1);
    }
  }
  EXPECT_TRUE(parse_mix("", "tok", "mix").empty());
}

TEST(Mix, ALineThatIsNoEntryIsNamedByItsNumber) {
  const std::pair<const char*, const char*> cases[] = {{"a,b/{TOKENIZER}/c\r\nno comma\r\n", "my.txt:2: found \"no comma\""},
                                                       {"\n\na,b,{TOKENIZER}", "my.txt:3: found \"a,b,{TOKENIZER}\", expected label,path"},
                                                       {"a,b/c.npy", "expected a path with {TOKENIZER}"},
                                                       {"{TOKENIZER},b/c.npy", "expected a path with {TOKENIZER}"}};
  for (const auto& [text, expected] : cases) {
    const std::string message = message_of<DataError>([&] { parse_mix(text, "tok", "my.txt"); });
    EXPECT_NE(message.find(expected), std::string::npos) << message;
  }
}

TEST(Mix, TheFolderDependsOnTheMixFirst) {
  const std::string dolma2 = "allenai/dolma2-tokenizer", neox = "allenai/gpt-neox-olmo-dolma-v1_5", sigdig = "allenai/dolma2-tokenizer-sigdig";
  EXPECT_EQ(tokenizer_folder("OLMo-mix-0925-official", dolma2), "allenai/dolma3-tokenizer");
  EXPECT_EQ(tokenizer_folder("OLMo-mix-0925-official", neox), neox);
  EXPECT_EQ(tokenizer_folder("OLMo-mix-0925", neox), "gpt-neox-olmo-dolma-v1_5");
  EXPECT_EQ(tokenizer_folder("OLMo-mix-0625", neox), neox);
  EXPECT_EQ(tokenizer_folder("dolma3-0625-6T-mix", sigdig), "dolma2-tokenizer-sigdig");
  EXPECT_EQ(tokenizer_folder("my-mix", dolma2), dolma2);
  EXPECT_EQ(tokenizer_folder("my-mix", "some/other"), "some/other");
  EXPECT_EQ(canonical_mix_name("dolma3-0925-150B-mix"), "OLMo-mix-0625-150Bsample");
}

TEST(Mix, BaseDirectoryAndPathAreJoinedWithOneSlash) {
  EXPECT_EQ(below("/data", "a/b"), "/data/a/b");
  EXPECT_EQ(below("/data/", "a/b"), "/data/a/b");
}

}  // namespace
}  // namespace dz::data
