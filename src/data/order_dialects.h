// The dialects of make_order, for settings that it has checked. Internal to this room.
#pragma once

#include <memory>
#include <vector>

#include "data/order.h"

namespace dz::data {

// `stages` begins at step 1 and ascends.
std::shared_ptr<const Order> make_keyed_order(const OrderSettings& settings, std::vector<BatchStage> stages);
std::shared_ptr<const Order> make_olmo_core_order(const OrderSettings& settings, std::vector<BatchStage> stages);
std::shared_ptr<const Order> make_maxtext_order(const OrderSettings& settings);

// ConfigError for a step that no run reaches: sums of positions and epochs stay below 2^63.
void check_step(int64_t step);

// The place in `stages` of the one that holds at `step`.
size_t stage_of(const std::vector<BatchStage>& stages, int64_t step);

// The complaint of all checks of settings.
[[noreturn]] void refuse_order(std::string where, std::string found, std::string expected, std::string hint = "");

}  // namespace dz::data
