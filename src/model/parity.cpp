#include "model/parity.h"

#include <cmath>

namespace dz::model {
namespace {

// Statistics, not the numerics path: the math library's exp and log are good enough here.
double log_sum_exp(const float* logits, int64_t count) {
  double most = double{logits[0]};
  for (int64_t j = 1; j < count; ++j) most = std::max(most, double{logits[j]});
  double sum = 0;
  for (int64_t j = 0; j < count; ++j) sum += std::exp(double{logits[j]} - most);
  return most + std::log(sum);
}

int64_t argmax(const float* logits, int64_t count) {
  int64_t best = 0;
  for (int64_t j = 1; j < count; ++j) best = logits[j] > logits[best] ? j : best;
  return best;
}

// Keeps a NaN, which std::max would drop.
double larger(double a, double b) { return a > b || std::isnan(a) ? a : b; }

}  // namespace

void Parity::add_row(const float* golden, const float* ours) {
  const double lse_p = log_sum_exp(golden, vocab_), lse_q = log_sum_exp(ours, vocab_);
  const int64_t best_p = argmax(golden, vocab_), best_q = argmax(ours, vocab_);
  double kl = 0, reverse = 0, farthest = 0, second = -INFINITY;
  for (int64_t j = 0; j < vocab_; ++j) {
    const double p = double{golden[j]}, q = double{ours[j]}, log_p = p - lse_p, log_q = q - lse_q;
    kl += std::exp(log_p) * (log_p - log_q);
    reverse += std::exp(log_q) * (log_q - log_p);
    farthest = larger(farthest, std::abs(p - q));
    sums_.mean_abs += std::abs(p - q);
    if (j != best_p) second = std::max(second, p);
  }
  sums_.positions += 1;
  sums_.mean_kl += kl;
  sums_.reverse_mean_kl += reverse;
  sums_.max_kl = larger(sums_.max_kl, kl);
  sums_.max_abs = larger(sums_.max_abs, farthest);
  if (best_p == best_q) {
    ++agreeing_;
  } else {
    sums_.top1_mismatches += 1;
    sums_.ties += double{golden[best_p]} - second < 2.0 * farthest ? 1 : 0;
  }
}

void Parity::add(int64_t rows, const float* golden, const float* ours) {
  for (int64_t row = 0; row < rows; ++row) add_row(golden + row * vocab_, ours + row * vocab_);
}

ParityStats Parity::stats() const {
  ParityStats stats = sums_;
  const double positions = static_cast<double>(stats.positions);
  stats.mean_kl /= positions;
  stats.reverse_mean_kl /= positions;
  stats.mean_abs /= positions * static_cast<double>(vocab_);
  stats.top1_agreement = static_cast<double>(agreeing_) / positions;
  return stats;
}

}  // namespace dz::model
