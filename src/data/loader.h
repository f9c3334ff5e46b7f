// Batches of a run, read ahead by threads. Nothing here has state that a checkpoint would need: the batch of a step depends on data set,
// order and step alone, whatever the thread count or the prefetch depth.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/hash.h"
#include "data/dataset.h"
#include "data/order.h"

namespace dz::data {

inline constexpr int32_t kNoTarget = -1;  // equals kernels::kMasked

struct Batch {
  int64_t step = 0;
  int64_t instances = 0, sequence_length = 0;
  std::vector<int64_t> ids;            // [instances]
  std::vector<int32_t> tokens;         // [instances, sequence_length]
  std::vector<int32_t> targets;        // the next token; kNoTarget at the last position of an instance and where a mask says so
  std::vector<int32_t> first_visible;  // first position of the document that a position belongs to; empty without document masks
  std::vector<int64_t> row_labels;     // [instances]: targets of each that are not kNoTarget
  std::vector<uint8_t> filtered;       // [instances]: 1 for an instance without a target because a filter took it
  int64_t labels = 0;                  // targets that are not kNoTarget
  Digest128 digest;                    // XXH3-128 over the ids (int64) and then the tokens (int32), little-endian
};

Digest128 digest_of(const Batch& batch);  // as it stands in a batch

// What is done to each batch after it was read (warm_up.h); may be null. Thread safe.
using BatchChange = std::function<void(Batch&)>;

Batch make_batch(const Dataset& dataset, const Order& order, int64_t step, bool intra_document, const BatchChange& change = nullptr);
// Any instances of one length, in the given order (evaluation); step is 0.
Batch make_batch(const Dataset& dataset, std::vector<int64_t> ids, bool intra_document);

struct LoaderSettings {
  int threads = 1;             // 0: take() reads on the calling thread
  int prefetch = 2;            // batches ready or in work beyond the one asked for; at least 1 with threads
  bool intra_document = true;  // a token sees only its own document
  BatchChange change;
};

class Loader {
 public:
  Loader(std::shared_ptr<const Dataset> dataset, std::shared_ptr<const Order> order, const LoaderSettings& settings);
  ~Loader();  // always returns, also when nobody has taken what was read
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The batch of `step` (>= 1). Steps in sequence are read ahead; any other step works too and starts a new sequence.
  // Throws what the reading of this batch threw, with its cause.
  Batch take(int64_t step);
  double seconds_waited() const;  // in take() since the start: the "data" share of a step

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dz::data
