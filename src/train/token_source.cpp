#include "train/token_source.h"

#include <fmt/format.h>

#include <map>

#include "base/error.h"
#include "base/hash.h"
#include "data/data_tokenizer.h"
#include "data/dataset_kinds.h"
#include "data/file_list.h"
#include "data/mix.h"
#include "data/mixture_data.h"

namespace dz::train {
namespace {

void open_shards(const Recipe& recipe, TrainingData& data) {
  data.shards = std::make_shared<const data::TokenShards>(recipe.data.shards);
  data.store = data::shard_store(data.shards, data::Split::kTrain);
  data::DataTokenizer tokenizer = data::tokenizer_of(*data.shards);
  data.tokenizer_json = std::move(tokenizer.json);
  if (!tokenizer.note.empty() && recipe.data.tokens.tokenizer.empty()) data.notes.push_back(std::move(tokenizer.note));
}

// The tokenizer that the recipe names, which stands in for one beside the shards.
void take_tokenizer(const Recipe& recipe, TrainingData& data) {
  const std::string& path = recipe.data.tokens.tokenizer;
  const std::string where = "recipe.data.tokens.tokenizer: " + path;
  std::string json = read_file(path);
  data::check_tokenizer(json, where, data.store->vocabulary().size);
  const std::string named = data.shards ? data.shards->manifest().tokenizer_sha256 : "";
  if (const std::string found = sha256_hex(json); !named.empty() && found != named) {
    throw ConfigError(Complaint{.where = where,
                                .found = "a file with SHA-256 " + found,
                                .expected = fmt::format("{}, the tokenizer_sha256 of the shards' manifest", named),
                                .hint = ""});
  }
  data.tokenizer_json = std::move(json);
}

std::vector<std::string> expand_all(const std::vector<std::string>& patterns) {
  std::vector<std::string> paths;
  for (const std::string& pattern : patterns) {
    for (std::string& path : data::expand(pattern)) paths.push_back(std::move(path));
  }
  return paths;
}

data::BareSettings bare_settings(const Recipe& recipe, const OpenDataOptions& options) {
  const TokenFormat& tokens = recipe.data.tokens;
  data::BareSettings settings;
  settings.vocabulary = {.size = tokens.vocab_size > 0 ? tokens.vocab_size : recipe.model.vocab_size,
                         .eos_id = tokens.eos_id,
                         .pad_id = tokens.pad_id,
                         .bos_id = tokens.bos_id};
  settings.type =
      recipe.data.dtype.empty() ? data::token_type_for(settings.vocabulary.size) : data::parse_token_type(recipe.data.dtype, "recipe.data.dtype");
  settings.cache_directory = options.cache;
  return settings;
}

std::string stem_of(const std::string& path) { return fs::path(path).stem().string(); }

// A list may mean it, so it is only said. Links count as the file that they lead to.
void note_repeats(const std::vector<std::string>& paths, std::vector<std::string>& notes) {
  std::map<std::string, int64_t> times;
  for (const std::string& path : paths) {
    std::error_code ignored;
    const fs::path file = fs::canonical(path, ignored);
    if (file.empty() || ++times[file.string()] != 2) continue;
    notes.push_back(fmt::format("{}: comes more than once in the list of files, so its instances do too", path));
  }
}

void open_bare(const Recipe& recipe, data::BareSettings settings, ThreadPool& pool, TrainingData& data) {
  note_repeats(settings.paths, data.notes);
  const auto store = std::make_shared<const data::BareStore>(std::move(settings));
  store->hash(pool);
  data.notes.insert(data.notes.end(), store->notes().begin(), store->notes().end());
  data.store = store;
  if (recipe.data.source_permutation_seed >= 0) {
    const data::BigSeed seed(static_cast<uint64_t>(recipe.data.source_permutation_seed));
    data.store = data::permuted_store(data.store, data::source_permutation(data.store->size(), seed));
  }
}

void open_files(const Recipe& recipe, const OpenDataOptions& options, ThreadPool& pool, TrainingData& data) {
  data::BareSettings settings = bare_settings(recipe, options);
  settings.paths = expand_all(recipe.data.files);
  settings.masks = expand_all(recipe.data.label_masks);
  open_bare(recipe, std::move(settings), pool, data);
}

void open_mix(const Recipe& recipe, const OpenDataOptions& options, ThreadPool& pool, TrainingData& data) {
  const MixRecipe& mix = recipe.data.mix;
  const std::string name = data::canonical_mix_name(mix.name.empty() ? stem_of(mix.file) : mix.name);
  data::BareSettings settings = bare_settings(recipe, options);
  for (const data::MixEntry& entry : data::parse_mix(read_file(mix.file), data::tokenizer_folder(name, mix.tokenizer), mix.file)) {
    settings.paths.push_back(data::below(mix.base_dir, entry.path));
    settings.labels.push_back(entry.label);
  }
  open_bare(recipe, std::move(settings), pool, data);
}

void open_mixture(const Recipe& recipe, const OpenDataOptions& options, TrainingData& data) {
  const data::MixtureSpec spec = data::read_mixture_spec(recipe.data.mixture);
  const auto demand = [&](const char* key, int64_t found, int64_t expected) {
    if (found == expected) return;
    throw ConfigError(Complaint{.where = fmt::format("{}: {}", recipe.data.mixture, key),
                                .found = std::to_string(found),
                                .expected = fmt::format("{}, as the recipe has it", expected),
                                .hint = ""});
  };
  demand("sequence_length", spec.sequence_length, recipe.data.sequence_length);
  demand("batch tokens", spec.batch_tokens, recipe.batch * recipe.data.sequence_length);
  data::Mixture mixture = data::open_mixture(spec, bare_settings(recipe, options));
  data.notes = std::move(mixture.notes);
  data.store = std::move(mixture.store);
  if (recipe.data.kind != DataKind::kFixed || recipe.data.max_target_length > 0) {
    throw ConfigError(
        Complaint{.where = "recipe.data.kind", .found = "another cut", .expected = "fixed, without max_target_length, for a mixture", .hint = ""});
  }
  data.dataset = std::move(mixture.dataset);
}

}  // namespace

void open_tokens(const Recipe& recipe, const OpenDataOptions& options, ThreadPool& pool, TrainingData& data) {
  switch (recipe.data.source) {
    case DataSource::kShards:
      open_shards(recipe, data);
      break;
    case DataSource::kFiles:
      open_files(recipe, options, pool, data);
      break;
    case DataSource::kMix:
      open_mix(recipe, options, pool, data);
      break;
    case DataSource::kMixture:
      open_mixture(recipe, options, data);
      break;
    case DataSource::kGenerated:
      break;
  }
  if (!recipe.data.tokens.tokenizer.empty()) take_tokenizer(recipe, data);
}

}  // namespace dz::train
