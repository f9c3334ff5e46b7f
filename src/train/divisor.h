// What the loss of a batch is divided by.
//
// global: the targets of the whole batch, so that the loss depends on the set of targets only. olmo-core: as OLMo-core's train module does
// on `ranks` ranks (row j of a batch belongs to rank j mod ranks): each rank divides by its own targets plus sequence_length for each of
// its filtered instances, and the ranks' means are averaged; with filtered instances that loss is lower than the mean of its targets.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/loader.h"

namespace dz::train {

enum class Divisor : uint8_t { kGlobal, kOlmoCore };

// The weight of each instance's tokens in the gradient: [instances]. Zero where a rank has nothing to divide by.
std::vector<float> loss_weights(const data::Batch& batch, Divisor divisor, int64_t ranks);

// The loss, from the sum over each instance's tokens: [instances]. Zero for a batch without a target.
double mean_loss(const data::Batch& batch, std::span<const double> sums, Divisor divisor, int64_t ranks);

// The mean of each virtual rank by its own divisor, [ranks]: what that rank of OLMo-core would report.
std::vector<double> rank_losses(const data::Batch& batch, std::span<const double> sums, int64_t ranks);

}  // namespace dz::train
