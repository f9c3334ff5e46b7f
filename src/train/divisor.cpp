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
  std::vector<double> by_rank(divisor == Divisor::kGlobal ? 1 : static_cast<size_t>(ranks), 0.0);
  for (size_t row = 0; row < sums.size(); ++row) by_rank[row % by_rank.size()] += sums[row];
  if (divisor == Divisor::kGlobal) return batch.labels > 0 ? by_rank[0] / static_cast<double>(batch.labels) : 0.0;
  const std::vector<int64_t> parts = divisors(batch, ranks);
  double mean = 0;
  for (size_t rank = 0; rank < by_rank.size(); ++rank) mean += parts[rank] > 0 ? by_rank[rank] / static_cast<double>(parts[rank]) : 0.0;
  return mean / static_cast<double>(ranks);
}

}  // namespace dz::train
