#include "train/recipe.h"

#include <algorithm>

#include "train/model_recipe.h"

namespace dz::train {
namespace {

constexpr double kMany = 1e15;  // more of anything than a run could count, and far from the edge of int64_t
constexpr double kSizes = 1 << 24;

void visit_muon(FieldVisitor& visitor, optim::MuonSettings& muon) {
  visitor.enter("muon", "matrices of the layers, with name: muon; torch's names and defaults");
  visitor.field({.key = "lr", .help = "their peak; 0: optimizer.lr", .least = 0, .most = 1e3, .added = true}, muon.lr);
  visitor.field({.key = "momentum", .help = "share of the old average", .least = 0, .most = 1, .added = true}, muon.momentum);
  visitor.field({.key = "nesterov", .help = "look ahead", .added = true}, muon.nesterov);
  visitor.field({.key = "weight_decay", .help = "times the rate, each step", .least = 0, .most = 1e3, .added = true}, muon.weight_decay);
  visitor.field({.key = "ns_steps", .help = "of the Newton-Schulz iteration", .least = 1, .most = 99, .added = true}, muon.ns_steps);
  visitor.field({.key = "ns_coefficients", .help = "of x, x^3, x^5", .least = -1e3, .most = 1e3, .added = true}, muon.ns_coefficients);
  visitor.field({.key = "eps", .help = "the least norm", .least = 1e-30, .most = 1e30, .added = true}, muon.eps);
  choice(visitor, {.key = "adjust_lr_fn", .help = "the rate by the shape", .added = true}, {"original", "match_rms_adamw"}, muon.adjust_lr_fn);
  visitor.leave();
}

void visit_optimizer(FieldVisitor& visitor, Recipe& recipe) {
  visitor.enter("optimizer", "AdamW, or Muon for the matrices of the layers");
  choice(visitor, {.key = "name", .help = ""}, {"adamw", "muon"}, recipe.optimizer);
  choice(visitor, {.key = "form", .help = "of OLMo-core's update: other roundings of the moments", .added = true}, {"foreach", "single"},
         recipe.adamw.form);
  visitor.field({.key = "lr", .help = "the peak of the schedule", .least = 0, .most = 1e3, .required = true}, recipe.schedule.lr);
  std::vector<double> betas = {recipe.adamw.beta1, recipe.adamw.beta2};
  visitor.field({.key = "betas", .help = "two numbers in [0, 1)", .least = 0, .most = 1 - 1e-12}, betas);
  recipe.adamw.beta1 = betas.empty() ? -1 : betas[0];
  recipe.adamw.beta2 = betas.size() == 2 ? betas[1] : -1;
  visitor.field({.key = "eps", .help = "added to the root of the second moment", .least = 0, .most = 1}, recipe.adamw.eps);
  visitor.field({.key = "weight_decay", .help = "times the rate, each step", .least = 0, .most = 1e3}, recipe.adamw.weight_decay);
  visitor.field({.key = "no_decay", .help = "names of tensors without decay; * and ? match anything"}, recipe.adamw.no_decay);
  visitor.field({.key = "initial_step", .help = "Adam's step before the first update", .least = 0, .most = kMany, .added = true},
                recipe.initial_step);
  visitor.field({.key = "max_grad_norm", .help = "clip the gradient to this norm; 0: do not", .least = 0, .most = 1e30}, recipe.max_grad_norm);
  visit_muon(visitor, recipe.muon);
  visitor.enter("skip_step", "leave out updates that stand out");
  visitor.field({.key = "enabled", .help = "false: only steps that are not finite"}, recipe.skip_step.enabled);
  visitor.field({.key = "window", .help = "steps of history", .least = 2, .most = 1e6}, recipe.skip_step.window);
  double sigma = static_cast<double>(recipe.skip_step.sigma);
  visitor.field({.key = "sigma", .help = "standard deviations above the mean", .least = 0, .most = 1e6}, sigma);
  recipe.skip_step.sigma = static_cast<float>(sigma);
  visitor.field({.key = "max_consecutive", .help = "skips in a row that mean divergence (exit 79); 0: never", .least = 0, .most = kMany},
                recipe.max_consecutive_skips);
  visitor.leave();
  visitor.leave();
}

}  // namespace

void visit(FieldVisitor& visitor, Recipe& recipe) {
  visitor.field({.key = "seed", .help = "of weights and order"}, recipe.seed);
  visitor.field({.key = "steps", .help = "of the whole run, and of its schedule", .least = 1, .most = kMany, .required = true}, recipe.steps);
  visitor.field({.key = "batch", .help = "instances a step", .least = 1, .most = kSizes, .required = true}, recipe.batch);
  visitor.field({.key = "dtype", .help = "of the compute; state is f32", .allowed = {"bf16", "fp32"}}, recipe.dtype);
  visitor.field({.key = "lanes", .help = "chains that a batch's gradient is cut into: a power of two", .least = 1, .most = 65536}, recipe.lanes);
  visitor.field({.key = "init", .help = "random, torch, normal, normalized, fan_in, llama, llama_depth, or a model directory or .safetensors file"},
                recipe.init);
  choice(visitor, {.key = "init_stream", .help = "random numbers of a method: ours, or torch's from 2.12 on, or before", .added = true},
         {"keyed", "torch", "torch-erfinv"}, recipe.init_stream);
  visitor.field({.key = "init_seed", .help = "of a method; -1: seed", .least = -1, .most = kMany, .added = true}, recipe.init_seed);
  visitor.enter("init_moments", "what Adam starts with, as a stage that goes on from another: both, or none for zeros");
  visitor.field({.key = "exp_avg", .help = ".safetensors file, a tensor for each weight", .is_path = true}, recipe.init_moments.exp_avg);
  visitor.field({.key = "exp_avg_sq", .help = "the second moments", .is_path = true}, recipe.init_moments.exp_avg_sq);
  visitor.leave();
  visitor.field({.key = "numerics", .help = "the numerics contract"}, recipe.numerics);
  visit(visitor, recipe.data);
  visit_model(visitor, recipe);
  visit_optimizer(visitor, recipe);
  visit_schedule(visitor, recipe.schedule, recipe.schedule_keys);
  visitor.enter("loss", "cross entropy, with");
  visitor.field({.key = "z_loss", .help = "multiplier of the squared log normaliser", .least = 0, .most = 1e3}, recipe.z_loss);
  choice(visitor, {.key = "divisor", .help = "global targets, or as OLMo-core's ranks divide", .added = true}, {"global", "olmo-core"},
         recipe.loss_divisor);
  visitor.field({.key = "divisor_ranks", .help = "olmo-core: its ranks, whoever carries the run", .least = 1, .most = 1e6, .added = true},
                recipe.divisor_ranks);
  visitor.field({.key = "mask_padding", .help = "targets that are the pad token have no weight", .added = true}, recipe.mask_padding);
  visitor.leave();
}

int64_t largest_batch(const Recipe& recipe) {
  const DataRecipe& data = recipe.data;
  int64_t most = recipe.batch;
  for (const Stage& stage : parse_stages(data.warm_up.batch, "recipe.data.warm_up.batch")) most = std::max(most, stage.value);
  // Shorter instances are more instances.
  int64_t shortest = data.kind == DataKind::kVsl ? data.vsl.min_length : data.sequence_length;
  if (data.warm_up.mode == "split") {
    for (const Stage& stage : parse_stages(data.warm_up.sequence_length, "recipe.data.warm_up.sequence_length"))
      shortest = std::min(shortest, stage.value);
  }
  return most * std::max<int64_t>(1, data.sequence_length / shortest);
}

void visit(FieldVisitor& visitor, Topology& topology) {
  visitor.field({.key = "device", .help = "", .allowed = {"cpu"}}, topology.device);
  visitor.field({.key = "threads", .help = "0: every core", .least = 0, .most = 1024}, topology.threads);
  visitor.field({.key = "loader_threads", .help = "0: read between steps", .least = 0, .most = 256}, topology.loader_threads);
  visitor.field({.key = "prefetch", .help = "batches read ahead", .least = 0, .most = 1024}, topology.prefetch);
  visitor.field({.key = "micro_batch", .help = "at most so many instances at a time", .least = 1, .most = kSizes}, topology.micro_batch);
  visitor.field({.key = "ranks", .help = "processes; this version has one", .least = 1, .most = 1}, topology.ranks);
  visitor.field(
      {.key = "remat", .help = "activations to compute again: none, minimal_with_context, save_dot_with_context_except_mlp, full, or stages"},
      topology.remat);
  visitor.field({.key = "zero", .help = "shard the optimizer over ranks"}, topology.zero);
}

void visit(FieldVisitor& visitor, RunSettings& run) {
  visitor.field({.key = "dir", .help = "the run directory", .is_path = true}, run.dir);
  visitor.field({.key = "checkpoint_every", .help = "steps; 0: only the last", .least = 0, .most = kMany}, run.checkpoint_every);
  visitor.field({.key = "keep", .help = "newest checkpoints; 0: all", .least = 0, .most = kMany}, run.keep);
  visitor.field({.key = "digest_every", .help = "steps between state digests in metrics.jsonl; 0: with each checkpoint", .least = 0, .most = kMany},
                run.digest_every);
  visitor.field({.key = "log_every", .help = "steps between plain progress lines", .least = 1, .most = kMany}, run.log_every);
  visitor.field({.key = "stop_on_signal", .help = "SIGINT and SIGTERM: finish the step, save, stop"}, run.stop_on_signal);
  visitor.field({.key = "verify_data", .help = "read all data at the start: hashes and ids; false: sizes, and files not hashed before"},
                run.verify_data);
  visitor.enter("landmarks", "evaluations on the way");
  visitor.field({.key = "every", .help = "steps, and at 0 and the last; 0: none", .least = 0, .most = kMany}, run.landmarks.every);
  visitor.field({.key = "prompt", .help = "of the sample text"}, run.landmarks.prompt);
  visitor.field({.key = "sample_tokens", .help = "its length; 0: no sample", .least = 0, .most = 1e6}, run.landmarks.sample_tokens);
  visitor.leave();
}

}  // namespace dz::train
