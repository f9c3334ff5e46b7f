// Whether a model computes what a reference computed: logits, hidden states and gradients against a file of the reference's
// (docs/verbs/parity.md). Statistics are in float64; nothing here is part of the numerics path.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "eval/parity_file.h"
#include "model/load.h"
#include "model/parity.h"

namespace dz {
class ThreadPool;
}

namespace dz::eval {

struct HiddenError {
  int64_t index = 0;  // 0 the embedding, i after layer i, n_layers + 1 after the final norm
  std::string after;  // the same in words
  double max_abs = 0;
  double relative_rms = 0;  // of the difference, over that of the reference's
};

struct Float64Error {  // rms distance of float32 logits from float64 ones
  double ours = 0;
  std::optional<double> reference;  // NAME.logits' own, when the file has them
};

struct PairParity {
  std::string name;
  int64_t instances = 0, seq = 0;
  std::optional<model::ParityStats> logits;
  std::optional<double> logsumexp_max_abs;
  std::optional<double> top1_agreement;  // with NAME.top1, when there are no logits to say it
  std::optional<Float64Error> float64;
  std::vector<HiddenError> hidden;
};

// Every pair of the file, an instance at a time; no more logits in memory than a chunk of rows. T: the compute type, bf16 or float.
template <class T>
std::vector<PairParity> compare_with_golden(const model::LoadedModel& model, const GoldenFile& golden, ThreadPool& pool);

struct GradientError {
  std::string tensor;
  double relative = 0;  // largest difference over the reference's largest gradient of the tensor; infinity when only the latter is 0
};

// Gradients of the mean cross entropy of the next token over all instances: `gradients`, a safetensors file with one F32, F64, BF16 or F16 tensor
// for each parameter, by its name. InputError, CheckpointError; DataError naming a tensor that is missing, left over or of another shape.
template <class T>
std::vector<GradientError> compare_gradients(const model::LoadedModel& model, std::span<const int32_t> tokens, int64_t instances,
                                             const fs::path& gradients, ThreadPool& pool);

// The same gradients of `model`. DataError when there is no next token.
template <class T>
model::Parameters mean_loss_gradients(const model::LoadedModel& model, std::span<const int32_t> tokens, int64_t instances, ThreadPool& pool);

}  // namespace dz::eval
