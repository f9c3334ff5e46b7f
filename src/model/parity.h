// How far one model's logits are from another's: the statistics of a parity report, all in float64 (docs/verbs/parity.md).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace dz {
class ThreadPool;
}

namespace dz::model {

// A position whose likeliest token is another one in ours. `gap`: of a model's likeliest token over its second.
struct Top1Mismatch {
  int64_t row = 0;
  int64_t reference = 0, ours = 0;
  double reference_gap = 0, our_gap = 0;
  bool tie = false;  // the reference's gap is below twice the largest |P - Q| of the position
};

inline constexpr int64_t kMostMismatches = 1000;  // that are listed; all are counted

// P = the reference's logits, Q = ours; KL(P || Q) in nats a position, over the columns that are compared. Of equal logits the lowest token is
// the likelier. A NaN makes what it touches NaN, never a pass.
struct ParityStats {
  int64_t positions = 0;
  double mean_kl = 0, max_kl = 0, reverse_mean_kl = 0;
  double max_abs = 0, mean_abs = 0, rms = 0;  // P - Q over all logits
  double cosine_min = 1;                      // of a position's two rows
  double top1_agreement = 0;                  // share of positions with the same likeliest token
  int64_t top1_mismatches = 0, ties = 0;
  double top5_overlap = 0, top10_overlap = 0;  // mean share of P's k likeliest tokens that are among Q's k or equal their last
  double mean_rank = 0;                        // of P's likeliest token in Q; 1: it is Q's, too
  int64_t max_rank = 0;
  int64_t targets = 0;
  double reference_loss = 0, loss = 0;  // mean cross entropy of the targets, nats; NaN without any
  std::vector<Top1Mismatch> mismatches;
};

struct LogitsRows {
  int64_t rows = 0;
  const float* reference = nullptr;
  int64_t reference_stride = 0;
  const float* ours = nullptr;
  int64_t our_stride = 0;
  const int32_t* targets = nullptr;  // [rows], negative: none; null: none at all
};

class Parity {
 public:
  // columns: the first of each row, over which the softmax goes.
  Parity(int64_t columns, ThreadPool& pool) : columns_(columns), pool_(pool) {}
  // The order of rows, not of calls or threads, decides every bit.
  void add(const LogitsRows& rows);
  ParityStats stats() const;

 private:
  int64_t columns_;
  ThreadPool& pool_;
  ParityStats sums_;
};

double larger(double a, double b);  // a NaN stays, which std::max would drop
double log_sum_exp(std::span<const float> logits);
int64_t argmax(std::span<const float> logits);  // the lowest of equals

}  // namespace dz::model
