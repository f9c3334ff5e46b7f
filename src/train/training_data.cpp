#include "train/training_data.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "data/dataset_kinds.h"
#include "data/fingerprint.h"
#include "data/index.h"
#include "data/kind_fingerprints.h"
#include "data/loader_state.h"
#include "data/pad_targets.h"
#include "data/skipped_order.h"
#include "data/vsl_order.h"
#include "data/warm_up.h"
#include "train/token_source.h"

namespace dz::train {
namespace {

std::optional<data::RepetitionFilter> filter_of(const DataRecipe& data) {
  if (data.filter.count == 0) return std::nullopt;
  return data::RepetitionFilter{.max_period = data.filter.periods,
                                .max_count = data.filter.count,
                                .dialect = data::parse_filter_dialect(data.filter.dialect, "recipe.data.filter.dialect")};
}

data::DocumentOptions documents_of(const DataRecipe& data) {
  return {.boundaries = data::parse_boundaries(data.documents.boundaries, "recipe.data.documents.boundaries"),
          .tail = data.documents.keep_tail ? data::Tail::kKeep : data::Tail::kDrop};
}

data::PackedSettings packed_settings(const DataRecipe& data, const OpenDataOptions& options) {
  return {.sequence_length = data.sequence_length,
          .documents = documents_of(data),
          .long_documents = data::parse_long_documents(data.documents.long_documents, "recipe.data.documents.long_documents"),
          .source_group_size = data.packing.group_size,
          .dialect = data::parse_packing_dialect(data.packing.dialect, "recipe.data.packing.dialect"),
          .filter = filter_of(data),
          .cache_directory = options.cache,
          .olmo_core_caches = data.packing.olmo_core_caches};
}

data::PaddedSettings padded_settings(const DataRecipe& data) {
  return {.sequence_length = data.sequence_length, .documents = documents_of(data), .filter = filter_of(data)};
}

data::InterleavedSettings interleaved_settings(const DataRecipe& data) {
  return {.sequence_length = data.sequence_length,
          .docs_per_instance = data.interleaved.documents,
          .chunks_per_doc = data.interleaved.chunks,
          .seed = data.seed,
          .exempt = data.interleaved.exempt,
          .documents = documents_of(data),
          .filter = filter_of(data)};
}

data::VslSettings vsl_settings(const DataRecipe& data) {
  return {.min_length = data.vsl.min_length, .max_length = data.sequence_length, .documents = documents_of(data), .filter = filter_of(data)};
}

data::VslCurriculum curriculum_of(const DataRecipe& data) {
  return {
      .kind = data::parse_curriculum(data.vsl.curriculum, "recipe.data.vsl.curriculum"), .cycles = data.vsl.cycles, .balanced = data.vsl.balanced};
}

std::shared_ptr<const data::Dataset> cut(const DataRecipe& data, const OpenDataOptions& options, const TrainingData& opened) {
  switch (data.kind) {
    case DataKind::kPadded:
      return data::padded_dataset(opened.store, padded_settings(data));
    case DataKind::kPacked:
      return data::packed_dataset(opened.store, packed_settings(data, options));
    case DataKind::kInterleaved:
      return data::interleaved_dataset(opened.store, interleaved_settings(data));
    case DataKind::kVsl:
      return data::vsl_dataset(opened.store, vsl_settings(data));
    case DataKind::kFixed:
      break;
  }
  std::shared_ptr<const data::Dataset> fixed =
      opened.dataset ? opened.dataset : data::fixed_dataset(opened.store, data.sequence_length, data.max_target_length);
  if (const auto filter = filter_of(data)) return data::filtered_dataset(std::move(fixed), *filter);
  return fixed;
}

std::shared_ptr<const data::Order> order_of(const Recipe& recipe, const data::Dataset& dataset) {
  const DataRecipe& data = recipe.data;
  if (data.kind == DataKind::kVsl) {
    return data::vsl_order(dataset, {.min_length = data.vsl.min_length,
                                     .batch_tokens = recipe.batch * data.sequence_length,
                                     .seed = data.seed,
                                     .shuffle = data.order.shuffle,
                                     .curriculum = curriculum_of(data)});
  }
  data::OrderSettings settings{.dialect = data::dialect_named(data.order.dialect),
                               .instances = dataset.instances(),
                               .batch = recipe.batch,
                               .seed = data.seed,
                               .shuffle = data.order.shuffle,
                               .chunk = std::max<int64_t>(1, data.max_target_length / data.sequence_length),
                               .hosts = data.order.hosts,
                               .workers = data.order.workers};
  for (const Stage& stage : parse_stages(data.warm_up.batch, "recipe.data.warm_up.batch"))
    settings.stages.push_back({.from_step = stage.from_step, .batch = stage.value});
  return data::make_order(settings);
}

// The fingerprint of MaxText's index covers the paths of then, so the index itself says it; sizes show that it is of this data.
std::string maxtext_fingerprint_of(const DataRecipe& data, const data::TokenStore& store) {
  std::vector<data::FingerprintFile> files;
  std::string tokenizer = data.mix.tokenizer;
  if (data.order.index.empty()) {
    for (const data::TokenEntry& entry : store.entries()) files.push_back({.path = entry.name, .size = entry.tokens});
  } else {
    const data::TokenIndex index = data::parse_index(read_file(data.order.index), data.order.index);
    tokenizer = index.tokenizer;
    for (const data::IndexedFile& file : index.files) files.push_back({.path = file.path, .size = file.tokens});
    const bool same = index.sequence_length == data.sequence_length &&
                      std::equal(files.begin(), files.end(), store.entries().begin(), store.entries().end(),
                                 [](const data::FingerprintFile& file, const data::TokenEntry& entry) { return file.size == entry.tokens; });
    if (!same) {
      throw ConfigError(
          Complaint{.where = data.order.index,
                    .found = fmt::format("{} files cut into {} tokens", files.size(), index.sequence_length),
                    .expected = fmt::format("the {} files of the recipe, of the same sizes in the same order, and its sequence_length", store.size()),
                    .hint = ""});
    }
  }
  return data::maxtext_fingerprint(data.sequence_length, data::name_of(store.type()), tokenizer, files);
}

// What a loader state of another trainer calls the data.
std::string fingerprint_of(const DataRecipe& data, const OpenDataOptions& options, const TrainingData& opened) {
  const data::TokenStore& store = *opened.store;
  if (data.order.dialect == "maxtext") return maxtext_fingerprint_of(data, store);
  switch (data.kind) {
    case DataKind::kPadded:
      return data::olmo_core_fingerprint(store, padded_settings(data));
    case DataKind::kPacked:
      return data::olmo_core_fingerprint(store, packed_settings(data, options));
    case DataKind::kInterleaved:
      return data::olmo_core_fingerprint(store, interleaved_settings(data));
    case DataKind::kVsl:
      return data::olmo_core_fingerprint(store, vsl_settings(data), curriculum_of(data));
    case DataKind::kFixed:
      break;
  }
  return data::olmo_core_fingerprint(store, data.max_target_length);
}

// Batches that are behind a run which goes on from another trainer's loader state.
int64_t batches_of_state(DataRecipe& data, const OpenDataOptions& options, const TrainingData& opened) {
  const data::LoaderIdentity identity{.sequence_length = data.sequence_length,
                                      .max_target = data.max_target_length > 0 ? std::optional(data.max_target_length) : std::nullopt,
                                      .fingerprint = fingerprint_of(data, options, opened),
                                      .dtype = std::string(data::name_of(opened.store->type())),
                                      .check_fingerprint = !options.override_data};
  const std::vector<fs::path> states(data.order.state.begin(), data.order.state.end());
  const int64_t batches = data::resume_position(states, std::nullopt, *opened.order, identity).step - 1;
  if (data.order.skip_batches != 0 && data.order.skip_batches != batches) {
    throw ConfigError(Complaint{.where = "recipe.data.order.skip_batches",
                                .found = std::to_string(data.order.skip_batches),
                                .expected = fmt::format("{}, what recipe.data.order.state says, or nothing", batches),
                                .hint = ""});
  }
  return batches;
}

void check_vocabulary(const Recipe& recipe, const data::Vocabulary& vocabulary) {
  if (vocabulary.size > recipe.model.vocab_size) {
    throw ConfigError(Complaint{.where = "recipe.model.vocab_size",
                                .found = std::to_string(recipe.model.vocab_size),
                                .expected = fmt::format("at least {}, the vocabulary of the data", vocabulary.size),
                                .hint = ""});
  }
}

}  // namespace

TrainingData open_data(Recipe& recipe, const OpenDataOptions& options, ThreadPool& pool) {
  TrainingData data;
  if (recipe.data.source == DataSource::kGenerated) {
    data.dataset =
        data::generated_dataset(recipe.data.generated, recipe.model.vocab_size, recipe.data.eos_id, recipe.data.seed, recipe.data.sequence_length);
    if (const auto filter = filter_of(recipe.data)) data.dataset = data::filtered_dataset(data.dataset, *filter);
  } else {
    open_tokens(recipe, options, pool, data);
    const data::Vocabulary& vocabulary = data.store->vocabulary();
    check_vocabulary(recipe, vocabulary);
    data.dataset = cut(recipe.data, options, data);
    data.manifest_json = data.store->manifest_json();
    if (vocabulary.eos_id >= 0) recipe.model.eos_token_ids = {static_cast<int32_t>(vocabulary.eos_id)};
  }
  data.order = order_of(recipe, *data.dataset);
  if (!recipe.data.order.state.empty() && data.store) {
    recipe.data.order.skip_batches = batches_of_state(recipe.data, options, data);
    recipe.data.order.state.clear();  // all that it had to say: the recipe of the run stands without it
  }
  data.order = data::skip_batches(data.order, recipe.data.order.skip_batches);
  return data;
}

void verify(const TrainingData& data, ThreadPool& pool) {
  if (data.store) data.store->verify(pool);
}

std::vector<std::string> data_differences(const std::string& then, const TrainingData& now, const std::string& where) {
  if (!now.store) return {};
  if (now.shards) return data::differences(data::parse_token_manifest(then, where), now.shards->manifest());
  return data::file_differences(then, now.manifest_json);
}

data::BatchChange batch_change(const Recipe& recipe, const data::Vocabulary& vocabulary) {
  const std::vector<Stage> stages = parse_stages(recipe.data.warm_up.sequence_length, "recipe.data.warm_up.sequence_length");
  if (recipe.mask_padding && vocabulary.pad_id < 0) {
    throw ConfigError(Complaint{.where = "recipe.loss.mask_padding",
                                .found = "true",
                                .expected = "false for data without a pad token",
                                .hint = "or its id as recipe.data.tokens.pad_id"});
  }
  if (stages.empty() && !recipe.mask_padding) return nullptr;
  const int64_t pad = recipe.mask_padding ? vocabulary.pad_id : -1;
  const data::WarmUpMode mode = data::parse_warm_up_mode(recipe.data.warm_up.mode, "recipe.data.warm_up.mode");
  return [stages, mode, pad](data::Batch& batch) {
    if (pad >= 0) data::mask_pad_targets(batch, static_cast<int32_t>(pad));
    if (!stages.empty()) data::shorten(batch, value_at(stages, batch.step, batch.sequence_length), mode);
  };
}

}  // namespace dz::train
