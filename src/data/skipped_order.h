// An order that begins behind some batches of another: for a run that goes on where another trainer stopped.
#pragma once

#include <cstdint>
#include <memory>

#include "data/order.h"

namespace dz::data {

// Step N of the result is step N + batches of `order`. batches >= 0.
std::shared_ptr<const Order> skip_batches(std::shared_ptr<const Order> order, int64_t batches);

}  // namespace dz::data
