#include "cli/landmark.h"

#include <fmt/format.h>

#include "eval/loss.h"

namespace dz::cli {
namespace {

void write_loss(const train::Config& config, const train::TrainingData& data, const train::TrainState& state, const fs::path& directory, ThreadPool& pool,
                train::Progress& progress) {
  if (!data.shards || data.shards->manifest().tokens(data::Split::kHeldOut) < config.recipe.data.sequence_length) return;
  const eval::LossSettings settings{.dtype = config.recipe.dtype,
                                    .sequence_length = config.recipe.data.sequence_length,
                                    .document_masks = config.recipe.data.document_masks,
                                    .micro_batch = config.topology.micro_batch};
  const eval::LossResult result = eval::held_out_loss(config.recipe.model, state.parameters, data.shards, settings, pool);
  write_file_atomic(directory / "loss.json", eval::to_json(result, settings, state.step));
  progress.note(fmt::format("landmark step {}: held-out loss {:.4f} over {} tokens", state.step, result.total.loss(), train::with_commas(result.total.tokens)));
}

}  // namespace

void write_landmark(const train::Config& config, const train::TrainingData& data, const train::TrainState& state, const fs::path& directory, ThreadPool& pool,
                    train::Progress& progress) {
  dz::create_directories(directory);
  write_loss(config, data, state, directory, pool, progress);
}

}  // namespace dz::cli
