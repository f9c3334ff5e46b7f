// deltazero convert: between Hugging Face directories and native checkpoints, in pieces that fit into little memory (docs/conversion.md).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "checkpoint/shards.h"
#include "convert/source.h"

namespace dz::convert {

struct Options {
  fs::path in, out;
  fs::path like;                      // Source::open
  std::optional<Form> to;             // the other one of `in` unless given
  std::string dtype;                  // "F32" or "BF16" for every tensor; empty: each keeps that of the original weights
  Names names = Names::kHuggingFace;  // of the tensors written
  int64_t max_shard_bytes = checkpoint::kDefaultShardBytes;
  bool moments = false;  // native to Hugging Face: also exp_avg.safetensors and exp_avg_sq.safetensors
};

struct Report {
  fs::path in, out;  // the directory of the weights that were taken; what was written
  Form from = Form::kHuggingFace, to = Form::kNative;
  int64_t step = 0;
  int64_t tensors = 0, parameters = 0;
  int64_t out_bytes = 0;                         // of tensor data
  int64_t files = 0;                             // that hold weights
  std::vector<std::string> in_types, out_types;  // dtypes, sorted
  std::vector<std::string> notes, warnings;
};

// `done` of `total` bytes, each byte that is written or read back counted once.
using ProgressOf = std::function<void(int64_t done, int64_t total)>;

// Writes into a hidden directory beside `out`, syncs, reads everything back and compares names, shapes and hashes; then one rename to `out`,
// which must be missing or an empty directory. On any error nothing is left behind.
//   ConfigError  native holds float32 only; the two sides are another model
//   CreateError  `out` is there already, or cannot be made
//   IoError      disk full: with the sizes needed and free
//   DataError    a weight is NaN or infinite and goes into a native checkpoint; and the errors of Source::open
Report convert(const Options& options, const ProgressOf& progress);

}  // namespace dz::convert
