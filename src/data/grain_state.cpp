// The states of Grain's DataLoader (grain 0.2.18, data_loader.py) over MaxText's sampler (maxtext 0.2.5, olmo_data_grain.py).
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/error.h"
#include "data/loader_state.h"
#include "data/loader_state_json.h"

namespace dz::data {
namespace {

constexpr int64_t kVersion = 2;

// What MaxText's sampler prints of itself. Its initial_step is not there, so a state must not be combined with one.
std::string sampler_of(const Order& order, int64_t host) {
  const OrderSettings& s = order.settings();
  return fmt::format("OlmoIndexSampler(total_instances={}, seed={}, shard_index={}, shard_count={}, shuffle={})", s.instances, s.seed.decimal(), host,
                     s.hosts, s.shuffle ? "True" : "False");
}

// Up to the paths that the files were moved by, which do not matter.
std::string data_source_of(const LoaderIdentity& identity) {
  return fmt::format("OlmoNpyDataSource(fingerprint='{}', seq={}, dtype='{}', remap=", identity.fingerprint, identity.sequence_length,
                     identity.dtype == "uint16" ? "<u2" : "<u4");
}

void check_identity(const StateJson& state, const Order& order, const LoaderIdentity& identity, int64_t host) {
  const int64_t version = state.integer("version"), workers = state.integer("worker_count");
  if (version != kVersion) state.refuse_run("version", std::to_string(version), std::to_string(kVersion));
  // No worker and one worker give the same batches.
  if (workers < 0 || std::max<int64_t>(workers, 1) != std::max<int64_t>(order.settings().workers, 1))
    state.refuse_run("worker_count", std::to_string(workers), fmt::format("the recipe's {} workers", order.settings().workers),
                     "their number shapes the batches");
  state.require_same("sampler", state.text("sampler"), sampler_of(order, host));
  const std::string source = state.text("data_source"), expected = data_source_of(identity);
  if (identity.check_fingerprint && !source.starts_with(expected)) state.refuse_run("data_source", source, expected + "...)");
}

// Batches that a worker has handed out: its last index i - W + next W, where it took B records a batch.
int64_t batches_of(const StateJson& state, int64_t last_seen, int64_t worker, int64_t workers, int64_t batch) {
  const int64_t first = worker - workers;
  const bool sound = last_seen >= first && (last_seen - first) % workers == 0 && (last_seen - first) / workers % batch == 0;
  if (!sound)
    state.refuse(fmt::format("last_seen_indices.{}", worker), std::to_string(last_seen),
                 fmt::format("{} and whole batches of {} records of this worker", first, batch));
  return (last_seen - first) / workers / batch;
}

int64_t batches_done(const StateJson& state, const Order& order) {
  const int64_t workers = std::max<int64_t>(state.integer("worker_count"), 1), batch = order.settings().batch / order.settings().hosts;
  const std::vector<int64_t> last_seen = state.numbered("last_seen_indices");
  if (static_cast<int64_t>(last_seen.size()) != workers)
    state.refuse("last_seen_indices", fmt::format("{} workers", last_seen.size()), fmt::format("{}", workers));
  std::vector<int64_t> batches;
  int64_t done = 0;
  for (int64_t worker = 0; worker < workers; ++worker) {
    const int64_t seen = last_seen[static_cast<size_t>(worker)];
    if (seen >= int64_t{1} << 55) state.refuse("last_seen_indices", std::to_string(seen), "below 2^55");
    batches.push_back(batches_of(state, seen, worker, workers, batch));
    if (__builtin_add_overflow(done, batches.back(), &done)) state.refuse("last_seen_indices", "more than 2^63 batches", "fewer");
  }
  // Workers take turns, so the first ones are ahead by one.
  for (int64_t worker = 0; worker < workers; ++worker) {
    const int64_t expected = done / workers + (worker < done % workers ? 1 : 0);
    if (batches[static_cast<size_t>(worker)] != expected)
      state.refuse(fmt::format("last_seen_indices.{}", worker), fmt::format("{} of {} batches", batches[static_cast<size_t>(worker)], done),
                   fmt::format("{}: the workers take turns", expected));
  }
  const int64_t last = state.integer("last_worker_index");
  if (last < -1 || last >= workers || (last + 1) % workers != done % workers)
    state.refuse("last_worker_index", std::to_string(last), fmt::format("{}, after {} batches", done % workers - 1, done));
  return done;
}

}  // namespace

LoaderPosition grain_position(std::span<const LoaderStateText> hosts, const Order& order, const LoaderIdentity& identity) {
  DZ_CHECK(order.settings().dialect == Dialect::kMaxText, "hosts", hosts.size());
  if (static_cast<int64_t>(hosts.size()) != order.settings().hosts)
    throw ConfigError(Complaint{.where = hosts.empty() ? "loader state" : hosts[0].where,
                                .found = fmt::format("the states of {} hosts", hosts.size()),
                                .expected = fmt::format("those of all {} hosts of the recipe", order.settings().hosts),
                                .hint = ""});
  int64_t done = 0;
  for (size_t host = 0; host < hosts.size(); ++host) {
    const StateJson state(hosts[host]);
    check_identity(state, order, identity, static_cast<int64_t>(host));
    const int64_t of_host = batches_done(state, order);
    if (host > 0 && of_host != done)
      state.refuse_run("last_seen_indices", fmt::format("{} batches", of_host), fmt::format("{}, as on host 0", done),
                       "states of different steps, or of a run that read every host's records sharded twice");
    done = of_host;
  }
  return {order.epoch(done + 1), done, done + 1};
}

}  // namespace dz::data
