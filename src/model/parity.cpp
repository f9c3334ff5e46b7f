#include "model/parity.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/thread_pool.h"

namespace dz::model {
namespace {

// Statistics, not the numerics path: the math library's exp and log are good enough here.

constexpr size_t kTop = 10;

// The likeliest tokens of a row, likeliest first, the lowest of equals first.
struct Top {
  std::array<double, kTop> logits;
  std::array<int64_t, kTop> tokens;
  size_t count = 0;

  explicit Top(std::span<const float> row) {
    for (size_t j = 0; j < row.size(); ++j) {
      const double logit = double{row[j]};
      if (count == kTop && !(logit > logits[kTop - 1])) continue;
      size_t place = count < kTop ? count++ : kTop - 1;
      for (; place > 0 && logit > logits[place - 1]; --place) {
        logits[place] = logits[place - 1];
        tokens[place] = tokens[place - 1];
      }
      logits[place] = logit;
      tokens[place] = static_cast<int64_t>(j);
    }
  }

  double gap() const { return count > 1 ? logits[0] - logits[1] : std::numeric_limits<double>::infinity(); }
  // Share of the first k tokens that are among the first k of `row`, whose own top is `other`; one that equals the last of them is.
  double overlap(const Top& other, std::span<const float> row, size_t k) const {
    k = std::min(k, count);
    size_t both = 0;
    for (size_t i = 0; i < k; ++i) both += double{row[static_cast<size_t>(tokens[i])]} >= other.logits[k - 1] ? 1 : 0;
    return static_cast<double>(both) / static_cast<double>(k);
  }
};

// 1 + the tokens that come before `token`.
int64_t rank_of(int64_t token, std::span<const float> row) {
  const float logit = row[static_cast<size_t>(token)];
  int64_t before = 0;
  for (size_t j = 0; j < row.size(); ++j) before += row[j] > logit || (row[j] == logit && static_cast<int64_t>(j) < token);
  return 1 + before;
}

double smaller(double a, double b) { return a < b || std::isnan(a) ? a : b; }

struct RowStats {
  double kl = 0, reverse = 0, max_abs = 0, sum_abs = 0, squares = 0, cosine = 0, top5 = 0, top10 = 0;
  int64_t rank = 0;
  bool has_target = false;
  double reference_ce = 0, ce = 0;
  Top1Mismatch top;
};

RowStats compare(std::span<const float> reference, std::span<const float> ours, int32_t target) {
  RowStats row;
  const double lse_p = log_sum_exp(reference), lse_q = log_sum_exp(ours);
  double pq = 0, pp = 0, qq = 0;
  for (size_t j = 0; j < reference.size(); ++j) {
    const double p = double{reference[j]}, q = double{ours[j]}, log_p = p - lse_p, log_q = q - lse_q;
    const double weight = std::exp(log_p), reverse_weight = std::exp(log_q);
    // A token of no probability adds nothing, also where the other model gives it none either.
    row.kl += weight == 0 ? 0 : weight * (log_p - log_q);
    row.reverse += reverse_weight == 0 ? 0 : reverse_weight * (log_q - log_p);
    const double difference = p == q ? 0 : std::abs(p - q);
    row.max_abs = larger(row.max_abs, difference);
    row.sum_abs += difference;
    row.squares += difference * difference;
    pq += p * q;
    pp += p * p;
    qq += q * q;
  }
  row.cosine = pp == qq && pq == pp ? 1 : pq / std::sqrt(pp * qq);
  const Top top_p(reference), top_q(ours);
  row.top5 = top_p.overlap(top_q, ours, 5);
  row.top10 = top_p.overlap(top_q, ours, kTop);
  row.rank = rank_of(top_p.tokens[0], ours);
  row.top = {.reference = top_p.tokens[0],
             .ours = top_q.tokens[0],
             .reference_gap = top_p.gap(),
             .our_gap = top_q.gap(),
             .tie = top_p.gap() < 2.0 * row.max_abs};
  if (target >= 0) {
    row.has_target = true;
    row.reference_ce = lse_p - double{reference[static_cast<size_t>(target)]};
    row.ce = lse_q - double{ours[static_cast<size_t>(target)]};
  }
  return row;
}

void join(const RowStats& row, ParityStats& sums) {
  sums.mean_kl += row.kl;
  sums.reverse_mean_kl += row.reverse;
  sums.max_kl = larger(sums.max_kl, row.kl);
  sums.max_abs = larger(sums.max_abs, row.max_abs);
  sums.mean_abs += row.sum_abs;
  sums.rms += row.squares;
  sums.cosine_min = smaller(sums.cosine_min, row.cosine);
  sums.top5_overlap += row.top5;
  sums.top10_overlap += row.top10;
  sums.mean_rank += static_cast<double>(row.rank);
  sums.max_rank = std::max(sums.max_rank, row.rank);
  if (row.has_target) {
    sums.targets += 1;
    sums.reference_loss += row.reference_ce;
    sums.loss += row.ce;
  }
  if (row.top.reference != row.top.ours) {
    sums.top1_mismatches += 1;
    sums.ties += row.top.tie ? 1 : 0;
    if (static_cast<int64_t>(sums.mismatches.size()) < kMostMismatches) {
      sums.mismatches.push_back(row.top);
      sums.mismatches.back().row = sums.positions;
    }
  }
  sums.positions += 1;
}

}  // namespace

double larger(double a, double b) { return a > b || std::isnan(a) ? a : b; }

double log_sum_exp(std::span<const float> logits) {
  double most = -std::numeric_limits<double>::infinity();
  for (const float logit : logits) most = std::max(most, double{logit});
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit} - most);
  return most + std::log(sum);
}

int64_t argmax(std::span<const float> logits) { return std::max_element(logits.begin(), logits.end()) - logits.begin(); }

void Parity::add(const LogitsRows& rows) {
  std::vector<RowStats> stats(static_cast<size_t>(rows.rows));
  const auto width = static_cast<size_t>(columns_);
  pool_.parallel_for(rows.rows, [&](int64_t row) {
    stats[static_cast<size_t>(row)] = compare({rows.reference + row * rows.reference_stride, width}, {rows.ours + row * rows.our_stride, width},
                                              rows.targets ? rows.targets[row] : -1);
  });
  for (const RowStats& row : stats) join(row, sums_);
}

ParityStats Parity::stats() const {
  ParityStats stats = sums_;
  const double positions = static_cast<double>(stats.positions), logits = positions * static_cast<double>(columns_);
  for (double* mean : {&stats.mean_kl, &stats.reverse_mean_kl, &stats.top5_overlap, &stats.top10_overlap, &stats.mean_rank}) *mean /= positions;
  stats.mean_abs /= logits;
  stats.rms = std::sqrt(stats.rms / logits);
  stats.top1_agreement = static_cast<double>(stats.positions - stats.top1_mismatches) / positions;
  for (double* loss : {&stats.reference_loss, &stats.loss}) *loss /= static_cast<double>(stats.targets);
  return stats;
}

}  // namespace dz::model
