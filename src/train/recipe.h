// The configuration of a run, in the three sections of its file: what decides the bits, who carries the run, where it goes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/config.h"
#include "model/init.h"
#include "optim/adamw.h"
#include "optim/muon.h"
#include "optim/schedules.h"
#include "optim/skip_step.h"
#include "train/data_recipe.h"
#include "train/divisor.h"
#include "train/fields.h"
#include "train/model_recipe.h"
#include "train/schedule_keys.h"

namespace dz::train {

// Adam's moments that a run starts with: safetensors files with a tensor for each weight; both or none.
struct InitMoments {
  std::string exp_avg, exp_avg_sq;
};

// Who updates the matrices of the layers; everything else is AdamW's.
enum class OptimizerName : uint8_t { kAdamW, kMuon };

// Everything that decides the bits. Its hash, with the digests of the data and of initial weights, is the identity of the run.
struct Recipe {
  uint64_t seed = 0;
  int64_t steps = 0;
  int64_t batch = 0;           // instances a step
  std::string dtype = "bf16";  // of the compute; weights, moments and gradients are f32
  int64_t lanes = 8;
  std::string init = "random";  // a method (train/init.h), a model directory, or a .safetensors file
  model::InitStream init_stream = model::InitStream::kKeyed;
  int64_t init_seed = -1;  // -1: seed
  InitMoments init_moments;
  std::string numerics;
  DataRecipe data;
  model::ModelConfig model;
  std::string model_name;             // of model: a name fills in its shape and is then forgotten
  int64_t full_every = 4;             // of model: every n-th layer has full attention
  model::YarnScaling yarn = kNoYarn;  // of model, as given; factor 0: none
  OptimizerName optimizer = OptimizerName::kAdamW;
  optim::AdamWSettings adamw;
  optim::MuonSettings muon;
  int64_t initial_step = 0;  // Adam's step before the first update
  double max_grad_norm = 1.0;
  optim::SkipStepSettings skip_step;
  int64_t max_consecutive_skips = 64;  // then training has diverged; 0: never
  optim::Schedule schedule;
  ScheduleKeys schedule_keys;
  double z_loss = 1e-5;
  Divisor loss_divisor = Divisor::kGlobal;
  int64_t divisor_ranks = 1;  // of the olmo-core divisor: virtual ones
  bool mask_padding = false;  // targets that are the pad token have no weight
};

// Instances of the largest batch, warm-up included.
int64_t largest_batch(const Recipe& recipe);

struct Topology {
  std::string device = "cpu";
  int64_t threads = 0;  // 0: every core
  int64_t loader_threads = 1;
  int64_t prefetch = 2;
  int64_t micro_batch = 8;  // at most so many instances at a time
  int64_t ranks = 1;
  std::string remat = "none";
  bool zero = false;
};

struct Landmarks {
  int64_t every = 0;  // steps; 0: none
  std::string prompt;
  int64_t sample_tokens = 100;
};

struct RunSettings {
  std::string dir;
  int64_t checkpoint_every = 100;  // 0: only the last step
  int64_t keep = 3;
  int64_t digest_every = 0;  // 0: with each checkpoint
  int64_t log_every = 10;
  bool stop_on_signal = true;
  bool verify_data = true;
  Landmarks landmarks;
};

struct Config {
  Recipe recipe;
  Topology topology;
  RunSettings run;
};

// Walk the fields of one section; the caller enters it. Values that follow from others are filled in by load_config (config.h).
void visit(FieldVisitor& visitor, Recipe& recipe);
void visit(FieldVisitor& visitor, Topology& topology);
void visit(FieldVisitor& visitor, RunSettings& run);

}  // namespace dz::train
