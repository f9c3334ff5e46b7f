#include "train/divisor.h"

#include "base/check.h"

namespace dz::train {
namespace {

// By rank.
std::vector<int64_t> divisors(const data::Batch& batch, int64_t ranks) {
  std::vector<int64_t> sums(static_cast<size_t>(ranks), 0);
  for (size_t row = 0; row < batch.row_labels.size(); ++row)
    sums[row % sums.size()] += batch.row_labels[row] + (batch.filtered[row] ? batch.sequence_length : 0);
  return sums;
}

std::vector<double> sums_by_rank(std::span<const double> sums, int64_t ranks) {
  std::vector<double> by_rank(static_cast<size_t>(ranks), 0.0);
  for (size_t row = 0; row < sums.size(); ++row) by_rank[row % by_rank.size()] += sums[row];
  return by_rank;
}

}  // namespace

std::vector<float> loss_weights(const data::Batch& batch, Divisor divisor, int64_t ranks) {
  DZ_CHECK(ranks >= 1, "ranks", ranks);
  const auto rows = static_cast<size_t>(batch.instances);
  if (divisor == Divisor::kGlobal)
    return std::vector<float>(rows, batch.labels > 0 ? static_cast<float>(1.0 / static_cast<double>(batch.labels)) : 0.0f);
  const std::vector<int64_t> by_rank = divisors(batch, ranks);
  std::vector<float> weights(rows);
  for (size_t row = 0; row < rows; ++row) {
    const int64_t own = by_rank[row % by_rank.size()];
    weights[row] = own > 0 ? static_cast<float>(1.0 / (static_cast<double>(ranks) * static_cast<double>(own))) : 0.0f;
  }
  return weights;
}

double mean_loss(const data::Batch& batch, std::span<const double> sums, Divisor divisor, int64_t ranks) {
  DZ_CHECK(static_cast<int64_t>(sums.size()) == batch.instances, "sums", sums.size(), "instances", batch.instances);
  if (divisor == Divisor::kGlobal) return batch.labels > 0 ? sums_by_rank(sums, 1)[0] / static_cast<double>(batch.labels) : 0.0;
  double mean = 0;
  for (const double own : rank_losses(batch, sums, ranks)) mean += own;
  return mean / static_cast<double>(ranks);
}

std::vector<double> rank_losses(const data::Batch& batch, std::span<const double> sums, int64_t ranks) {
  std::vector<double> means = sums_by_rank(sums, ranks);
  const std::vector<int64_t> parts = divisors(batch, ranks);
  for (size_t rank = 0; rank < means.size(); ++rank) means[rank] = parts[rank] > 0 ? means[rank] / static_cast<double>(parts[rank]) : 0.0;
  return means;
}

}  // namespace dz::train
