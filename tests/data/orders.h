// Orders that many tests want, in one line.
#pragma once

#include <cstdint>
#include <memory>

#include "data/order.h"

namespace dz::test {

inline std::shared_ptr<const data::Order> keyed_order(int64_t instances, int64_t batch, uint64_t seed) {
  return data::make_order({.instances = instances, .batch = batch, .seed = seed});
}

}  // namespace dz::test
