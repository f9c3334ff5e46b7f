#include "data/source_mixture.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"
#include "data/goldens.h"
#include "data/temporary.h"

namespace dz::data {
namespace {

using nlohmann::json;
using test::message_of;

struct Row {
  MixtureSpec spec;
  FileTokens tokens;
};

Row row_of(const json& golden) {
  Row row;
  row.spec.requested_tokens = golden["requested_tokens"];
  row.spec.sequence_length = golden["sequence_length"];
  row.spec.batch_tokens = golden["global_batch_size"];
  for (const json& source : golden["sources"]) {
    row.spec.sources.push_back({.name = source["name"],
                                .ratio = source["ratio"],
                                .paths = {},
                                .max_repetition = source["repeat"],
                                .max_source_fraction = source["fraction"]});
    row.tokens.push_back(source["file_tokens"]);
  }
  return row;
}

TEST(SourceMixture, IsAllocatedAsByOlmoCore) {
  const json golden = test::data_golden("vsl_mixture.json");
  int rows = 0, errors = 0;
  for (const json& item : golden["mixture_allocation"]) {
    const Row row = row_of(item);
    ++rows;
    if (item.contains("error")) {
      EXPECT_THROW(allocate_as_olmo_core(row.spec, row.tokens), ConfigError) << item;
      ++errors;
      continue;
    }
    json entries = json::array();
    for (const MixtureEntry& entry : allocate_as_olmo_core(row.spec, row.tokens))
      entries.push_back({row.spec.sources[static_cast<size_t>(entry.source)].name, entry.file, entry.tokens});
    EXPECT_EQ(entries, item["entries"]) << item;
  }
  EXPECT_EQ(rows, 30);
  EXPECT_EQ(errors, 4);
}

int64_t instances_of(const SampledSource& source) {
  int64_t sum = 0;
  for (const SampledFile& file : source.files) sum += source.rounds * file.usable + file.rest;
  return sum;
}

// Whatever the numbers, ours gives exactly what the steps need, or says what is missing; no file gives more than it has.
TEST(SourceMixture, SampledGivesWholeStepsOrAnError) {
  const json golden = test::data_golden("vsl_mixture.json");
  int made = 0;
  for (const json& item : golden["mixture_allocation"]) {
    const Row row = row_of(item);
    std::vector<SampledSource> sources;
    try {
      sources = allocate_sampled(row.spec, row.tokens);
    } catch (const ConfigError&) {
      continue;
    }
    ++made;
    int64_t sum = 0;
    for (size_t s = 0; s < sources.size(); ++s) {
      const MixtureSource& source = row.spec.sources[s];
      EXPECT_EQ(instances_of(sources[s]), sources[s].instances);
      sum += sources[s].instances;
      const double ideal = source.ratio * static_cast<double>(needed_instances(row.spec));
      EXPECT_LT(std::abs(static_cast<double>(sources[s].instances) - ideal), 1.0);
      int64_t most = 0, least = INT64_MAX;  // repeats over instances that are used
      for (size_t f = 0; f < sources[s].files.size(); ++f) {
        const SampledFile& file = sources[s].files[f];
        EXPECT_EQ(file.instances, row.tokens[s][f] / row.spec.sequence_length);
        EXPECT_LE(file.usable, file.instances);
        EXPECT_LE(file.rest, file.usable);
        if (file.usable > 0) most = std::max(most, sources[s].rounds + (file.rest > 0 ? 1 : 0));
        if (file.usable > 0) least = std::min(least, sources[s].rounds);
      }
      EXPECT_LE(most - (least == INT64_MAX ? 0 : least), 1);
      EXPECT_LE(static_cast<double>(most), std::ceil(source.max_repetition));
    }
    EXPECT_EQ(sum, needed_instances(row.spec)) << item;
  }
  EXPECT_GE(made, 20);
}

MixtureSpec five_sources() {
  MixtureSpec spec{.sources = {}, .requested_tokens = 96, .sequence_length = 8, .batch_tokens = 32};
  for (const int asked : {20, 20, 20, 20, 16})
    spec.sources.push_back({.name = "s" + std::to_string(spec.sources.size()), .ratio = asked / 96.0, .paths = {}});
  return spec;
}

TEST(SourceMixture, SampledRoundsByLargestRemainderAndNotDown) {
  std::vector<int64_t> counts;
  for (const SampledSource& source : allocate_sampled(five_sources(), FileTokens(5, {40}))) counts.push_back(source.instances);
  EXPECT_EQ(counts, (std::vector<int64_t>{3, 3, 2, 2, 2}));
}

TEST(SourceMixture, SampledSaysHowManyInstancesAreMissing) {
  const MixtureSpec one{.sources = {{.name = "a", .ratio = 1, .paths = {}}}, .requested_tokens = 96, .sequence_length = 8, .batch_tokens = 32};
  EXPECT_NE(message_of<ConfigError>([&] { allocate_sampled(one, {{47, 41}}); }).find("12 instances needed, 10 possible"), std::string::npos);
  MixtureSpec three = one;
  three.requested_tokens = three.batch_tokens = 24;
  const std::string message = message_of<ConfigError>([&] { allocate_sampled(three, {{17}}); });
  EXPECT_NE(message.find("3 instances needed, 2 possible, expected 8 tokens more"), std::string::npos) << message;
  // With room elsewhere the path gives what it has, and a file that is too small gives nothing.
  const std::vector<SampledSource> room = allocate_sampled(three, {{5, 17, 40}});
  EXPECT_EQ(room[0].files[0].instances, 0);
  EXPECT_LE(room[0].files[1].rest, 2);
  EXPECT_EQ(room[0].files[1].rest + room[0].files[2].rest, 3);
}

TEST(SourceMixture, RepetitionAndFractionAreLimits) {
  MixtureSpec spec{.sources = {{.name = "a", .ratio = 1, .paths = {}, .max_repetition = 2.5, .max_source_fraction = 0.5}},
                   .requested_tokens = 80,
                   .sequence_length = 8,
                   .batch_tokens = 80};
  const SampledSource source = allocate_sampled(spec, {{64, 16}})[0];  // 10 instances, 5 of them usable
  EXPECT_EQ(source.rounds, 2);
  EXPECT_EQ(source.files[0].usable + source.files[1].usable, 5);
  EXPECT_EQ(source.files[0].rest + source.files[1].rest, 0);
  spec.requested_tokens = spec.batch_tokens = 104;
  EXPECT_NE(message_of<ConfigError>([&] { allocate_sampled(spec, {{64, 16}}); }).find("13 instances needed, 12 possible"), std::string::npos);
}

TEST(SourceMixture, LargeNumbersDoNotWrap) {
  MixtureSpec spec = five_sources();
  spec.sequence_length = 8192;
  spec.batch_tokens = int64_t{8192} * 512;
  spec.requested_tokens = int64_t{6} << 40;
  const FileTokens tokens(5, std::vector<int64_t>(200, int64_t{1} << 33));
  int64_t sum = 0;
  for (const SampledSource& source : allocate_sampled(spec, tokens)) sum += source.instances;
  EXPECT_EQ(sum, (int64_t{6} << 40) / 8192);
  sum = 0;
  for (const MixtureEntry& entry : allocate_as_olmo_core(spec, tokens)) sum += entry.tokens;
  EXPECT_EQ(sum, int64_t{6} << 40);
}

class Spec : public ::testing::Test {
 protected:
  Spec() {
    std::filesystem::create_directory(directory / "a");
    for (const char* name : {"a/2.npy", "a/10.npy", "b.npy"}) test::spill(directory / name, "12345678");
  }
  MixtureSpec parse(const std::string& text) { return parse_mixture_spec(text, "mix.yaml", (directory / "").string()); }
  test::TemporaryDirectory directory;
  const std::string good =
      "requested_tokens: 96\nsequence_length: 8\nbatch_tokens: 32\nseed: 18446744073709551615\nsources:\n"
      "  - {name: x, ratio: 0.25, paths: [\"a/*.npy\"], max_repetition: 2}\n  - {source_name: y, target_ratio: 0.75, paths: [b.npy]}\n";
};

TEST_F(Spec, IsReadFromYamlOrJsonWithGlobsInOrder) {
  const MixtureSpec spec = parse(good);
  EXPECT_EQ(spec.dialect, MixtureDialect::kSampled);
  EXPECT_EQ(spec.seed, UINT64_MAX);
  ASSERT_EQ(spec.sources.size(), 2U);
  EXPECT_EQ(spec.sources[0].paths, (std::vector<std::string>{(directory / "a/10.npy").string(), (directory / "a/2.npy").string()}));
  EXPECT_EQ(spec.sources[0].max_repetition, 2);
  EXPECT_EQ(spec.sources[1].ratio, 0.75);
  const MixtureSpec same = parse(R"({"dialect": "olmo-core", "requested_tokens": 96, "sequence_length": 8, "global_batch_size": 32,
      "sources": [{"source_name": "y", "target_ratio": 1.0, "paths": ["b.npy"], "max_repetition_ratio": 1.5}]})");
  EXPECT_EQ(same.dialect, MixtureDialect::kOlmoCore);
  EXPECT_EQ(same.sources[0].max_repetition, 1.5);
}

TEST_F(Spec, MistakesAreNamedByLineAndKey) {
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  const std::pair<std::string, const char*> cases[] = {
      {replaced("sequence_length: 8", "sequence_length: 0"), "mix.yaml:2: sequence_length: found 0"},
      {replaced("seed:", "sead:"), "mix.yaml:4: sead: found an unknown key"},
      {replaced("0.25", "1.5"), "mix.yaml:6: ratio: found 1.5"},
      {replaced("0.25", "nan"), "mix.yaml:6: ratio"},
      {replaced("max_repetition: 2", "max_repetition: 0.5"), "mix.yaml:6: max_repetition"},
      {replaced("name: x", "name: y"), "y a second time"},
      {replaced("[b.npy]", "[]"), "mix.yaml:7: paths: found an empty list"},
      {replaced("[b.npy]", "[[x]]"), "mix.yaml:7: paths: found a list, expected"},
      {replaced("[b.npy]", ""), "mix.yaml:7: paths: found nothing, expected"},
      {"", "mix.yaml:1: found nothing, expected a map"},
      {"17", "mix.yaml:1: found 17, expected a map"},
      {"- a\n- b\n", "mix.yaml:1: found a list, expected a map"},
      {replaced("seed: 18446744073709551615", "dialect: mine"), "mix.yaml:4: dialect: found mine, expected sampled or olmo-core"},
      {"sources: [", "not valid YAML"},
      {"- 1", "expected a map"},
      {"", "expected a map"}};
  for (const auto& [text, expected] : cases) {
    const std::string message = message_of<ConfigError>([&] { parse(text); });
    EXPECT_NE(message.find(expected), std::string::npos) << text << message;
  }
  EXPECT_NE(message_of<InputError>([&] { parse(replaced("a/*.npy", "a/*.bin")); }).find("no file that matches"), std::string::npos);
  EXPECT_NE(message_of<InputError>([&] { parse(replaced("[b.npy]", "[mix-0625.npy]")); }).find("not every file"), std::string::npos);
}

}  // namespace
}  // namespace dz::data
