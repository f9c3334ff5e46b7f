#include "data/loader_state.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "data/order_dialects.h"

namespace dz::data {
namespace {

constexpr int64_t kMostBytes = 1 << 24;

LoaderStateText read_state(const fs::path& path) {
  const File file = File::open_read(path);
  const int64_t size = file.size();
  if (size > kMostBytes)
    throw DataError(
        Complaint{.where = path.string(), .found = fmt::format("{} bytes", size), .expected = "a loader state of at most 16 MiB", .hint = ""});
  LoaderStateText text{path.string(), std::string(static_cast<size_t>(size), '\0')};
  file.read_at(0, std::as_writable_bytes(std::span(text.json)));
  return text;
}

}  // namespace

LoaderPosition resume_position(const std::vector<fs::path>& states, std::optional<int64_t> steps_done, const Order& order,
                               const LoaderIdentity& identity) {
  // A state and a position would be added up, as in Grain, whose sampler does not say that it has been moved.
  if (!states.empty() && steps_done)
    refuse_order("resume", fmt::format("a loader state and {} steps done", *steps_done), "one of them", "the state says where to go on");
  if (states.empty() && !steps_done) refuse_order("resume", "nothing", "a loader state or a number of steps done");
  if (steps_done) {
    if (*steps_done < 0 || *steps_done >= int64_t{1} << 62) refuse_order("resume", fmt::format("{} steps done", *steps_done), "0 to 2^62 - 1");
    const int64_t step = *steps_done + 1;
    const bool by_epoch = order.settings().dialect == Dialect::kOlmoCore;
    return {order.epoch(step), by_epoch ? order.position(step) / order.batch_size(step) : *steps_done, step};
  }
  std::vector<LoaderStateText> texts;
  for (const fs::path& path : states) texts.push_back(read_state(path));
  if (order.settings().dialect == Dialect::kMaxText) return grain_position(texts, order, identity);
  if (order.settings().dialect != Dialect::kOlmoCore)
    refuse_order("resume", "a loader state with the keyed order", "olmo-core or maxtext: no other loader has our order");
  if (texts.size() != 1) refuse_order("resume", fmt::format("{} loader states", texts.size()), "one: OLMo-core's is the same on every rank");
  return olmo_core_position(texts[0], order, identity);
}

}  // namespace dz::data
