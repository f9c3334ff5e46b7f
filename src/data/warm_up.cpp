#include "data/warm_up.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/error.h"

namespace dz::data {
namespace {

// Columns [0, rows' length) of each piece of each instance, in order.
template <class T, class Change>
std::vector<T> reshape(const std::vector<T>& values, int64_t instances, int64_t from, int64_t to, int64_t pieces, const Change& change) {
  std::vector<T> rows;
  rows.reserve(static_cast<size_t>(instances * pieces * to));
  for (int64_t instance = 0; instance < instances; ++instance) {
    for (int64_t column = 0; column < pieces * to; ++column)
      rows.push_back(change(values[static_cast<size_t>(instance * from + column)], column / to * to, column % to));
  }
  return rows;
}

template <class T>
std::vector<T> repeat(const std::vector<T>& values, int64_t times) {
  std::vector<T> repeated;
  for (const T value : values) repeated.insert(repeated.end(), static_cast<size_t>(times), value);
  return repeated;
}

}  // namespace

std::string_view name_of(WarmUpMode mode) { return mode == WarmUpMode::kTruncate ? "truncate" : "split"; }

WarmUpMode parse_warm_up_mode(std::string_view name, const std::string& where) {
  for (const WarmUpMode mode : {WarmUpMode::kTruncate, WarmUpMode::kSplit}) {
    if (name == name_of(mode)) return mode;
  }
  throw ConfigError(Complaint{.where = where, .found = std::string(name), .expected = "truncate or split", .hint = ""});
}

void shorten(Batch& batch, int64_t length, WarmUpMode mode) {
  const int64_t from = batch.sequence_length;
  DZ_CHECK(length >= 2, "length", length);
  if (from <= length) return;
  DZ_CHECK(mode == WarmUpMode::kTruncate || from % length == 0, "from", from, "to", length);
  const int64_t pieces = mode == WarmUpMode::kSplit ? from / length : 1;
  const auto put = [&](auto& values, const auto& change) { values = reshape(values, batch.instances, from, length, pieces, change); };
  put(batch.tokens, [](int32_t token, int64_t, int64_t) { return token; });
  put(batch.targets, [&](int32_t target, int64_t, int64_t column) { return column + 1 == length ? kNoTarget : target; });
  if (!batch.first_visible.empty()) {
    put(batch.first_visible, [](int32_t first, int64_t start, int64_t) { return std::max(first - static_cast<int32_t>(start), 0); });
  }
  batch.ids = repeat(batch.ids, pieces);
  batch.filtered = repeat(batch.filtered, pieces);
  batch.instances *= pieces;
  batch.sequence_length = length;
  batch.row_labels.assign(static_cast<size_t>(batch.instances), 0);
  for (size_t i = 0; i < batch.targets.size(); ++i) batch.row_labels[i / static_cast<size_t>(length)] += batch.targets[i] != kNoTarget;
  batch.labels = 0;
  for (const int64_t labels : batch.row_labels) batch.labels += labels;
  batch.digest = digest_of(batch);
}

}  // namespace dz::data
