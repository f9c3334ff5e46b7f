// How far one model's logits are from another's: the statistics of a parity report, all in float64 (docs/verbs/parity.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "model/load.h"

namespace dz {
class ThreadPool;
}

namespace dz::model {

// P = the golden logits, Q = ours: KL(P || Q) in nats a position, over the whole vocabulary.
struct ParityStats {
  int64_t positions = 0;
  double mean_kl = 0, max_kl = 0, reverse_mean_kl = 0;
  double max_abs = 0, mean_abs = 0;  // |P - Q| over all logits
  double top1_agreement = 0;         // share of positions with the same argmax (the lowest of equals)
  int64_t top1_mismatches = 0;
  int64_t ties = 0;  // mismatches where P's best two are closer than twice the largest |P - Q| of the position
};

class Parity {
 public:
  explicit Parity(int64_t vocab) : vocab_(vocab) {}
  // [rows, vocab] each; a NaN in either makes the statistics NaN, never a pass.
  void add(int64_t rows, const float* golden, const float* ours);
  ParityStats stats() const;

 private:
  void add_row(const float* golden, const float* ours);

  int64_t vocab_;
  ParityStats sums_;
  int64_t agreeing_ = 0;
};

struct ParityPair {
  std::string name;
  ParityStats stats;
};

// Every pair NAME.input_ids (integers, [T] or [n, T]) and NAME.logits (a float type, [..., T, vocab_size]) of a safetensors file, by name; other
// tensors of the file are left alone. T: the compute type, bf16 or float. InputError, CheckpointError or DataError naming file and tensor.
template <class T>
std::vector<ParityPair> compare_with_golden(const LoadedModel& model, const fs::path& golden, ThreadPool& pool);

}  // namespace dz::model
