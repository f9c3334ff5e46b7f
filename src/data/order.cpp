#include "data/order.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/check.h"
#include "base/error.h"
#include "data/order_dialects.h"

namespace dz::data {
namespace {

constexpr int64_t kMostInstances = int64_t{1} << 60;
constexpr int64_t kMostEpochs = int64_t{1} << 32;
constexpr int64_t kMostHosts = 1 << 20, kMostWorkers = 1 << 16;

void check_batch(const std::string& where, int64_t batch, int64_t instances) {
  if (batch < 1) refuse_order(where, std::to_string(batch), "at least 1 instance");
  if (batch > instances) {
    refuse_order(where, fmt::format("{} instances a step", batch), fmt::format("at most the {} instances of the data", instances),
                 "use more data, a smaller batch or a shorter sequence_length");
  }
}

void check_stages(const OrderSettings& settings) {
  int64_t before = 0;
  for (const BatchStage& stage : settings.stages) {
    if (stage.from_step <= before)
      refuse_order("batch stages", fmt::format("step {} after step {}", stage.from_step, before), "ascending steps from 1 on");
    check_batch(fmt::format("batch from step {}", stage.from_step), stage.batch, settings.instances);
    before = stage.from_step;
  }
}

void check_chunk(const OrderSettings& settings) {
  if (settings.chunk < 1 || settings.chunk > std::max<int64_t>(settings.instances, 1) || settings.instances % settings.chunk != 0) {
    refuse_order("order.chunk", fmt::format("chunks of {} among {} instances", settings.chunk, settings.instances),
                 "a number of instances that the chunk divides",
                 "the instances of a file are counted in units of max_target_sequence_length, so the data was cut by another rule");
  }
}

void check_indices(const OrderSettings& settings) {
  if (settings.instances >= 0xffffffff) {
    refuse_order("order.dialect", fmt::format("{} with {} instances", name_of(settings.dialect), settings.instances), "fewer than 2^32 - 1 instances",
                 "its permutation holds 32-bit numbers; the keyed order has no such limit");
  }
}

void check_maxtext(const OrderSettings& settings) {
  if (settings.hosts < 1 || settings.hosts > kMostHosts) refuse_order("order.hosts", std::to_string(settings.hosts), "1 to 2^20 hosts");
  if (settings.workers < 0 || settings.workers > kMostWorkers) refuse_order("order.workers", std::to_string(settings.workers), "0 to 2^16 workers");
  if (settings.batch % settings.hosts != 0) {
    refuse_order("recipe.batch", fmt::format("{} instances for {} hosts", settings.batch, settings.hosts), "a multiple of the hosts",
                 "each host reads an equal share of a batch");
  }
  check_batch("recipe.batch", settings.batch, settings.instances - settings.instances % settings.hosts);
  if (settings.chunk != 1) refuse_order("order.chunk", std::to_string(settings.chunk), "1: maxtext shuffles single instances");
  if (!settings.stages.empty())
    refuse_order("batch stages", fmt::format("{} stages", settings.stages.size()), "none: maxtext has no batch-size warm-up",
                 "use the keyed or the olmo-core order");
}

}  // namespace

void refuse_order(std::string where, std::string found, std::string expected, std::string hint) {
  throw ConfigError(Complaint{.where = std::move(where), .found = std::move(found), .expected = std::move(expected), .hint = std::move(hint)});
}

std::string_view name_of(Dialect dialect) {
  switch (dialect) {
    case Dialect::kKeyed:
      return "keyed";
    case Dialect::kOlmoCore:
      return "olmo-core";
    case Dialect::kMaxText:
      return "maxtext";
  }
  return "";
}

Dialect dialect_named(std::string_view name) {
  for (const Dialect dialect : {Dialect::kKeyed, Dialect::kOlmoCore, Dialect::kMaxText}) {
    if (name_of(dialect) == name) return dialect;
  }
  refuse_order("order.dialect", "'" + std::string(name) + "'", "keyed, olmo-core or maxtext");
}

std::shared_ptr<const Order> make_order(const OrderSettings& given) {
  OrderSettings settings = given;
  if (settings.instances > kMostInstances) refuse_order("data", fmt::format("{} instances", settings.instances), "at most 2^60");
  check_batch("recipe.batch", settings.batch, settings.instances);
  const int64_t first = first_epoch_of(settings.dialect);
  if (settings.first_epoch < 0 || settings.first_epoch > kMostEpochs)
    refuse_order("order.first_epoch", std::to_string(settings.first_epoch), fmt::format("{} to 2^32", first));
  settings.first_epoch = std::max(settings.first_epoch, first);
  if (settings.dialect == Dialect::kMaxText) {
    check_maxtext(settings);
    check_indices(settings);
    return make_maxtext_order(settings);
  }
  if (settings.hosts != 1 || settings.workers != 0) {
    refuse_order("order.dialect", fmt::format("{} with {} hosts and {} workers", name_of(settings.dialect), settings.hosts, settings.workers),
                 "hosts and workers only with maxtext", "no other order depends on them");
  }
  check_chunk(settings);
  check_stages(settings);
  std::vector<BatchStage> stages = settings.stages;
  if (stages.empty() || stages.front().from_step > 1) stages.insert(stages.begin(), {1, settings.batch});
  if (settings.dialect == Dialect::kOlmoCore) {
    check_indices(settings);
    return make_olmo_core_order(settings, std::move(stages));
  }
  if (settings.seed.words().size() > 2) refuse_order("recipe.data.seed", settings.seed.decimal(), "a seed below 2^64 with the keyed order");
  return make_keyed_order(settings, std::move(stages));
}

void check_step(int64_t step) {
  DZ_CHECK(step >= 1, "step", step);
  if (step > int64_t{1} << 62) refuse_order("step", std::to_string(step), "at most 2^62");
}

size_t stage_of(const std::vector<BatchStage>& stages, int64_t step) {
  check_step(step);
  const auto after = std::upper_bound(stages.begin(), stages.end(), step, [](int64_t s, const BatchStage& stage) { return s < stage.from_step; });
  return static_cast<size_t>(after - stages.begin()) - 1;
}

std::vector<int64_t> rank_slice(std::span<const int64_t> batch, int64_t rank, int64_t ranks) {
  DZ_CHECK(rank >= 0 && rank < ranks, "rank", rank, "ranks", ranks);
  std::vector<int64_t> slice;
  for (size_t i = static_cast<size_t>(rank); i < batch.size(); i += static_cast<size_t>(ranks)) slice.push_back(batch[i]);
  return slice;
}

std::vector<int64_t> host_slice(std::span<const int64_t> batch, int64_t host, int64_t hosts) {
  const auto size = static_cast<int64_t>(batch.size());
  DZ_CHECK(host >= 0 && host < hosts && size % hosts == 0, "host", host, "hosts", hosts, "batch", size);
  const std::span<const int64_t> part = batch.subspan(static_cast<size_t>(host * (size / hosts)), static_cast<size_t>(size / hosts));
  return {part.begin(), part.end()};
}

}  // namespace dz::data
