#include "cli/inspect_instances.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/thread_pool.h"
#include "cli/corpus_options.h"
#include "data/data_tokenizer.h"
#include "data/documents.h"
#include "text/tokenizer.h"
#include "train/trainer.h"

namespace dz::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Opened {
  std::shared_ptr<const data::Dataset> dataset;
  std::optional<text::Tokenizer> tokenizer;
};

struct Instance {
  int64_t id = 0;
  std::string source;
  std::vector<int32_t> tokens;
  std::vector<uint8_t> label_mask;
  bool filtered = false;
  std::vector<int64_t> document_lengths;

  // Position 0 is none: it is read, not predicted.
  int64_t targets() const {
    int64_t count = 0;
    for (size_t i = 1; i < tokens.size(); ++i) count += !filtered && label_mask[i] != 0;
    return count;
  }
};

void put(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Opened open_recipe(const fs::path& file, const std::vector<std::string>& sets, int64_t sequence_length) {
  if (sequence_length != 0) {
    throw UsageError(Complaint{.where = "--seq",
                               .found = std::to_string(sequence_length),
                               .expected = "no --seq: " + file.string() + " says it",
                               .hint = "--set recipe.data.sequence_length=N changes it"});
  }
  train::Config config = train::load_config(file, sets);
  ThreadPool pool(default_threads());
  const train::TrainingData data =
      train::open_data(config.recipe, {.cache = fs::exists(config.run.dir) ? fs::path(config.run.dir) / "cache" : fs::path()}, pool);
  Opened opened{.dataset = data.dataset};
  if (!data.tokenizer_json.empty()) opened.tokenizer = text::Tokenizer::parse(data.tokenizer_json, "tokenizer.json of the data");
  return opened;
}

Opened open_shards(const fs::path& directory, int64_t sequence_length) {
  if (sequence_length < 2) {
    throw UsageError(Complaint{.where = "--seq",
                               .found = sequence_length == 0 ? "none" : std::to_string(sequence_length),
                               .expected = "tokens an instance, at least 2: " + directory.string() + " is a directory of token shards",
                               .hint = ""});
  }
  const auto shards = std::make_shared<const data::TokenShards>(directory);
  Opened opened{.dataset = data::shard_dataset(shards, data::Split::kTrain, sequence_length)};
  const std::string tokenizer = data::tokenizer_of(*shards).json;
  if (!tokenizer.empty()) opened.tokenizer = text::Tokenizer::parse(tokenizer, (directory / "tokenizer.json").string());
  return opened;
}

Opened open_data(const InstancesOptions& options) {
  const fs::path path = options.data;
  std::error_code ignored;
  if (fs::is_regular_file(path, ignored)) return open_recipe(path, options.sets, options.sequence_length);
  if (fs::exists(path / "recipe.yaml", ignored)) return open_recipe(path / "recipe.yaml", options.sets, options.sequence_length);
  if (fs::exists(path / "manifest.json", ignored)) return open_shards(path, options.sequence_length);
  throw InputError(path.string() + ": no data; expected a run, a config file or a directory of token shards");
}

std::pair<int64_t, int64_t> parse_range(const std::string& range, int64_t instances) {
  const auto fail = [&] {
    throw UsageError(Complaint{.where = "--instances",
                               .found = range,
                               .expected = fmt::format("A:B with 0 <= A < B <= {}, the instances of the data, or one number below it", instances),
                               .hint = ""});
  };
  const auto number = [&](std::string_view digits) {
    int64_t value = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (digits.empty() || digits.front() == '-' || error != std::errc() || end != digits.data() + digits.size()) fail();
    return value;
  };
  const size_t colon = range.find(':');
  const int64_t first = number(std::string_view(range).substr(0, colon));
  if (first >= instances) fail();
  const int64_t end = colon == std::string::npos ? first + 1 : number(std::string_view(range).substr(colon + 1));
  if (first >= end || end > instances) fail();
  return {first, end};
}

Instance read(const data::Dataset& dataset, int64_t id) {
  Instance instance{.id = id, .source = dataset.source_of(id).name};
  instance.tokens.resize(static_cast<size_t>(dataset.length(id)));
  instance.label_mask.assign(instance.tokens.size(), 1);
  data::Row row{.tokens = instance.tokens, .label_mask = instance.label_mask};
  dataset.read(id, row);
  instance.filtered = row.filtered;
  instance.document_lengths = data::document_lengths(instance.tokens, dataset.vocabulary());
  return instance;
}

std::string to_json(const Instance& instance) {
  return dump({{"id", instance.id},
               {"source", instance.source},
               {"tokens", instance.tokens},
               {"label_mask", instance.label_mask},
               {"filtered", instance.filtered},
               {"document_lengths", instance.document_lengths}});
}

// "3-7 9": the positions whose mask is 0.
std::string masked_positions(const std::vector<uint8_t>& mask) {
  std::string text;
  for (size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] != 0) continue;
    size_t end = i;
    while (end + 1 < mask.size() && mask[end + 1] == 0) ++end;
    text += end > i ? fmt::format(" {}-{}", i, end) : fmt::format(" {}", i);
    i = end;
  }
  return text;
}

// A line for each document: its text between quotes, with escapes, or its ids where there is no tokenizer.
std::string to_text(const Instance& instance, const std::optional<text::Tokenizer>& tokenizer) {
  std::string text = fmt::format("instance {}   {}   {} tokens, {} targets   {} document{}\n", instance.id, instance.source, instance.tokens.size(),
                                 instance.targets(), instance.document_lengths.size(), instance.document_lengths.size() == 1 ? "" : "s");
  if (instance.filtered) text += "  filtered: it repeats an n-gram, and none of its tokens is a target\n";
  if (const std::string masked = masked_positions(instance.label_mask); !masked.empty()) text += "  no targets at" + masked + "\n";
  size_t start = 0;
  for (const int64_t length : instance.document_lengths) {
    const std::span<const int32_t> tokens = std::span(instance.tokens).subspan(start, static_cast<size_t>(length));
    const std::string content = tokenizer ? dump(tokenizer->decode(tokens)) : fmt::format("{}", fmt::join(tokens, " "));
    text += fmt::format("  {:>6}  {}\n", start, content);
    start += static_cast<size_t>(length);
  }
  return text;
}

}  // namespace

void inspect_instances(const InstancesOptions& options) {
  const Opened opened = open_data(options);
  const data::Dataset& dataset = *opened.dataset;
  const auto [first, end] = parse_range(options.range, dataset.instances());
  if (options.json) {
    const Json head{{"data", options.data}, {"instances_in_all", dataset.instances()}, {"sequence_length", dataset.sequence_length()}};
    std::string text = dump(head);
    text.back() = ',';
    put(text + "\"instances\":[\n");
    for (int64_t id = first; id < end; ++id) put(to_json(read(dataset, id)) + (id + 1 < end ? ",\n" : "\n"));
    put("]}\n");
    return;
  }
  for (int64_t id = first; id < end; ++id) put(to_text(read(dataset, id), opened.tokenizer));
}

}  // namespace dz::cli
