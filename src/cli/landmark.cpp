#include "cli/landmark.h"

#include <fmt/format.h>

#include "cli/continue_text.h"
#include "eval/loss.h"

namespace dz::cli {
namespace {

void write_loss(const train::Config& config, const train::TrainingData& data, const train::TrainState& state, const fs::path& directory,
                ThreadPool& pool, train::Progress& progress) {
  if (!data.shards || data.shards->manifest().tokens(data::Split::kHeldOut) < config.recipe.data.sequence_length) return;
  const eval::LossSettings settings{.dtype = config.recipe.dtype,
                                    .sequence_length = config.recipe.data.sequence_length,
                                    .document_masks = config.recipe.data.document_masks,
                                    .micro_batch = config.topology.micro_batch};
  const eval::LossResult result = eval::held_out_loss(config.recipe.model, state.parameters, data.shards, settings, pool);
  write_file_atomic(directory / "loss.json", eval::to_json(result, settings, state.step));
  progress.note(
      fmt::format("landmark step {}: held-out loss {:.4f} over {} tokens", state.step, result.total.loss(), train::with_commas(result.total.tokens)));
}

void write_sample(const train::Config& config, const train::TrainingData& data, const train::TrainState& state, const fs::path& directory,
                  ThreadPool& pool) {
  const train::Landmarks& landmarks = config.run.landmarks;
  if (landmarks.sample_tokens == 0 || data.tokenizer_json.empty()) return;
  const text::Tokenizer tokenizer = text::Tokenizer::parse(data.tokenizer_json, "tokenizer.json of " + config.recipe.data.shards);
  const ContinueSettings settings{.dtype = config.recipe.dtype,
                                  .max_tokens = landmarks.sample_tokens,
                                  .sampling = {.temperature = 0.7, .top_p = 0.95, .seed = config.recipe.seed}};
  write_file_atomic(directory / "sample.txt",
                    continue_text(config.recipe.model, state.parameters, tokenizer, landmarks.prompt, settings, pool) + "\n");
}

}  // namespace

void write_landmark(const train::Config& config, const train::TrainingData& data, const train::TrainState& state, const fs::path& directory,
                    ThreadPool& pool, train::Progress& progress) {
  dz::create_directories(directory);
  write_loss(config, data, state, directory, pool, progress);
  write_sample(config, data, state, directory, pool);
}

}  // namespace dz::cli
