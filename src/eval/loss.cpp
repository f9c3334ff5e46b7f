#include "eval/loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/thread_pool.h"
#include "data/loader.h"
#include "model/transformer.h"

namespace dz::eval {
namespace {

template <class T>
LossResult run(const model::ModelConfig& config, const model::Parameters& parameters, const data::Dataset& dataset, const LossSettings& settings,
               ThreadPool& pool, const std::function<void(int64_t, int64_t)>& progress) {
  const int64_t most = std::min(settings.micro_batch, dataset.instances());
  model::Transformer<T> engine(config, {.max_instances = most, .seq = settings.sequence_length, .backward = false}, pool);
  engine.set_weights(parameters);
  LossResult result{.total = {.name = "total"}};
  for (const data::DatasetSource& source : dataset.sources()) {
    SourceLoss loss{.name = source.name};
    for (int64_t first = source.first; first < source.first + source.instances; first += most) {
      std::vector<int64_t> ids;
      for (int64_t id = first; id < std::min(first + most, source.first + source.instances); ++id) ids.push_back(id);
      const data::Batch batch = data::make_batch(dataset, std::move(ids), settings.document_masks);
      model::LossOut out;
      engine.forward_loss({.instances = batch.instances,
                           .seq = batch.sequence_length,
                           .tokens = batch.tokens.data(),
                           .targets = batch.targets.data(),
                           .first_visible = batch.first_visible.empty() ? nullptr : batch.first_visible.data()},
                          out);
      for (const double ce : out.ce) loss.sum += ce;
      loss.tokens += out.labels;
      if (progress) progress(first + batch.instances, dataset.instances());
    }
    if (source.instances == 0) continue;
    result.total.sum += loss.sum;
    result.total.tokens += loss.tokens;
    result.sources.push_back(std::move(loss));
  }
  return result;
}

nlohmann::ordered_json to_object(const SourceLoss& loss) {
  nlohmann::ordered_json object;
  if (loss.name != "total") object["name"] = loss.name;
  object["tokens"] = loss.tokens;
  object["loss"] = loss.loss();
  object["perplexity"] = std::exp(loss.loss());
  return object;
}

}  // namespace

LossResult held_out_loss(const model::ModelConfig& config, const model::Parameters& parameters, std::shared_ptr<const data::TokenShards> shards,
                         const LossSettings& settings, ThreadPool& pool, const std::function<void(int64_t, int64_t)>& progress) {
  if (shards->manifest().vocab_size > config.vocab_size) {
    throw ConfigError(Complaint{.where = shards->directory().string(),
                                .found = fmt::format("a vocabulary of {}", shards->manifest().vocab_size),
                                .expected = fmt::format("at most the model's {}", config.vocab_size),
                                .hint = "the tokens come from another tokenizer"});
  }
  const std::shared_ptr<const data::Dataset> dataset = data::shard_dataset(shards, settings.split, settings.sequence_length);
  if (settings.dtype == "bf16") return run<bf16>(config, parameters, *dataset, settings, pool, progress);
  return run<float>(config, parameters, *dataset, settings, pool, progress);
}

std::string to_json(const LossResult& result, const LossSettings& settings, int64_t step) {
  nlohmann::ordered_json json;
  if (step >= 0) json["step"] = step;
  json["dtype"] = settings.dtype;
  json["split"] = data::name_of(settings.split);
  json["sources"] = nlohmann::ordered_json::array();
  for (const SourceLoss& source : result.sources) json["sources"].push_back(to_object(source));
  json["total"] = to_object(result.total);
  return json.dump(1) + "\n";
}

}  // namespace dz::eval
