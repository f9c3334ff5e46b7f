// The state of OLMo-core's fixed-length loader (ai2-olmo-core 2.4.0, olmo_core/data/data_loader.py: state_dict, load_state_dict).
#include <fmt/format.h>

#include "base/check.h"
#include "data/loader_state.h"
#include "data/loader_state_json.h"

namespace dz::data {
namespace {

struct Position {
  int64_t epoch = 0, instances = 0;  // done in the epoch
  friend auto operator<=>(const Position&, const Position&) = default;
};

void check_identity(const StateJson& state, const Order& order, const LoaderIdentity& identity) {
  state.require_same("dataset_type", state.text("dataset_type"), "fsl", "only states of fixed-length data sets can be continued");
  if (identity.check_fingerprint) {
    // The reference would not compare fingerprints of two versions at all.
    const std::string hint = "the data is not what that run read, or not in its order";
    state.require_same("dataset_fingerprint_version", state.text("dataset_fingerprint_version"), identity.fingerprint_version, hint);
    state.require_same("dataset_fingerprint", state.text("dataset_fingerprint"), identity.fingerprint, hint);
  }
  state.require_same("seed", BigSeed(state.natural("seed")).decimal(), order.settings().seed.decimal(),
                     "take the state's seed into the recipe: the order depends on it");
}

// The token stream of an epoch does not depend on the sequence length only when both lengths divide the same max_target_sequence_length.
void check_lengths(const StateJson& state, const Order& order, const LoaderIdentity& identity) {
  const int64_t length = state.integer("sequence_length");
  const bool has_target = !state.is_null("max_target_sequence_length");
  const int64_t target = has_target ? state.integer("max_target_sequence_length") : 0;
  const auto shown = [](bool has, int64_t value) { return has ? std::to_string(value) : std::string("null"); };
  if (length < 1 || (has_target && (target < length || target % length != 0)))
    state.refuse("sequence_length", fmt::format("{} with max_target_sequence_length {}", length, shown(has_target, target)), "a divisor of it");
  state.require_same("max_target_sequence_length", shown(has_target, target),
                     shown(identity.max_target.has_value(), identity.max_target.value_or(0)));
  if (!has_target)
    state.require_same("sequence_length", std::to_string(length), std::to_string(identity.sequence_length),
                       "without max_target_sequence_length another length gives another order");
  const int64_t chunk = has_target ? target / identity.sequence_length : 1;
  if ((has_target && target % identity.sequence_length != 0) || chunk != order.settings().chunk)
    state.refuse_run("max_target_sequence_length", fmt::format("chunks of {} instances", chunk), fmt::format("{}", order.settings().chunk));
}

Position position_of(const StateJson& state, const Order& order, const LoaderIdentity& identity) {
  const int64_t batches = state.integer("batches_processed"), tokens = state.integer("tokens_processed");
  const int64_t length = state.integer("sequence_length");
  // Both count the batches of one size: a changed size rescales the former.
  const bool sound =
      batches >= 0 && tokens >= 0 && (batches == 0 ? tokens == 0 : tokens % batches == 0 && tokens / batches > 0 && tokens / batches % length == 0);
  if (!sound)
    state.refuse("tokens_processed", fmt::format("{} in {} batches", tokens, batches),
                 fmt::format("whole batches of instances of {} tokens", length));
  Position at;
  if (!(state.is_null("epoch") && batches == 0)) {
    at.epoch = state.integer("epoch");
    if (at.epoch < 1 || at.epoch > int64_t{1} << 32) state.refuse("epoch", std::to_string(at.epoch), "1 to 2^32");
  } else {
    at.epoch = 1;
  }
  if (identity.trainer_epoch && *identity.trainer_epoch != at.epoch) {
    if (batches != 0 || *identity.trainer_epoch != at.epoch + 1)
      state.refuse_run("epoch", std::to_string(at.epoch), fmt::format("{}, which the trainer's state says", *identity.trainer_epoch));
    ++at.epoch;
  }
  at.instances = tokens / identity.sequence_length;
  if (tokens % identity.sequence_length != 0 || at.instances > order.instances())
    state.refuse_run("tokens_processed", std::to_string(tokens),
                     fmt::format("instances of {} tokens, at most {}", identity.sequence_length, order.instances()));
  return at;
}

Position begin_of(const Order& order, int64_t step) { return {order.epoch(step), order.position(step)}; }

// The first step that begins at `at` or later.
int64_t step_at(const Order& order, const Position& at) {
  int64_t low = 1, high = 1;
  while (begin_of(order, high) < at) {
    low = high + 1;
    high *= 2;
  }
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (begin_of(order, middle) < at)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

}  // namespace

LoaderPosition olmo_core_position(const LoaderStateText& text, const Order& order, const LoaderIdentity& identity) {
  DZ_CHECK(order.settings().dialect == Dialect::kOlmoCore && identity.sequence_length >= 1, "length", identity.sequence_length);
  const StateJson state(text);
  check_identity(state, order, identity);
  check_lengths(state, order, identity);
  const Position at = position_of(state, order, identity);
  const int64_t step = step_at(order, at);
  const Position next = begin_of(order, step);
  // After the last whole batch of an epoch the next one begins.
  const bool ended = next.epoch == at.epoch + 1 && next.instances == 0 && at.instances > 0 && step > 1 &&
                     begin_of(order, step - 1) == Position{at.epoch, at.instances - order.batch_size(step - 1)};
  if (next != at && !ended)
    state.refuse_run("tokens_processed", fmt::format("{} instances of epoch {} done", at.instances, at.epoch),
                     fmt::format("the beginning of a step; the nearest is step {} after {} of epoch {}", step, next.instances, next.epoch),
                     "with this batch size instances would be read twice or left out");
  return {next.epoch, next.instances / order.batch_size(step), step};
}

}  // namespace dz::data
