#include "data/loader.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "base/check.h"
#include "base/stopwatch.h"
#include "data/documents.h"

namespace dz::data {
namespace {

void mark_documents(const Vocabulary& vocabulary, Batch& batch) {
  batch.first_visible.reserve(batch.tokens.size());
  const auto length = static_cast<size_t>(batch.sequence_length);
  for (size_t row = 0; row < batch.tokens.size(); row += length) {
    int64_t start = 0;
    for (const int64_t document : document_lengths(std::span(batch.tokens).subspan(row, length), vocabulary)) {
      batch.first_visible.insert(batch.first_visible.end(), static_cast<size_t>(document), static_cast<int32_t>(start));
      start += document;
    }
  }
}

// Target of position j is token j + 1 unless its mask is 0; the last position has none (OLMo-core: get_labels masks first, then shifts).
int64_t make_targets(const Row& row, std::span<int32_t> targets) {
  int64_t labels = 0;
  for (size_t j = 0; j + 1 < row.tokens.size(); ++j) {
    const bool target = !row.filtered && row.label_mask[j + 1] != 0;
    targets[j] = target ? row.tokens[j + 1] : kNoTarget;
    labels += target;
  }
  targets.back() = kNoTarget;
  return labels;
}

}  // namespace

Digest128 digest_of(const Batch& batch) {
  const auto ids = std::as_bytes(std::span(batch.ids)), tokens = std::as_bytes(std::span(batch.tokens));
  std::vector<std::byte> bytes(ids.begin(), ids.end());
  bytes.insert(bytes.end(), tokens.begin(), tokens.end());
  return xxh3_128(bytes);
}

Batch make_batch(const Dataset& dataset, std::vector<int64_t> ids, bool intra_document) {
  Batch batch;
  batch.instances = static_cast<int64_t>(ids.size());
  batch.sequence_length = ids.empty() ? dataset.sequence_length() : dataset.length(ids.front());
  batch.ids = std::move(ids);
  const auto length = static_cast<size_t>(batch.sequence_length);
  batch.tokens.resize(batch.ids.size() * length);
  batch.targets.resize(batch.tokens.size());
  std::vector<uint8_t> mask(length);
  for (size_t i = 0; i < batch.ids.size(); ++i) {
    DZ_CHECK(dataset.length(batch.ids[i]) == batch.sequence_length, "instance", batch.ids[i], "length", dataset.length(batch.ids[i]));
    std::fill(mask.begin(), mask.end(), uint8_t{1});
    Row row{.tokens = std::span(batch.tokens).subspan(i * length, length), .label_mask = mask};
    dataset.read(batch.ids[i], row);
    batch.row_labels.push_back(make_targets(row, std::span(batch.targets).subspan(i * length, length)));
    batch.filtered.push_back(row.filtered ? 1 : 0);
    batch.labels += batch.row_labels.back();
  }
  if (intra_document) mark_documents(dataset.vocabulary(), batch);
  batch.digest = digest_of(batch);
  return batch;
}

Batch make_batch(const Dataset& dataset, const Order& order, int64_t step, bool intra_document, const BatchChange& change) {
  Batch batch = make_batch(dataset, order.batch(step), intra_document);
  batch.step = step;
  if (change) change(batch);
  return batch;
}

// Workers take steps in turn from the window [begin, begin + prefetch]; a batch read for a sequence that was given up is thrown away.
struct Loader::State {
  struct Result {
    Batch batch;
    std::exception_ptr error;
  };

  State(std::shared_ptr<const Dataset> data, std::shared_ptr<const Order> order_of_run, const LoaderSettings& chosen)
      : dataset(std::move(data)), order(std::move(order_of_run)), settings(chosen) {}

  ~State() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    wake.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  Result read(int64_t step) const {
    Result result;
    try {
      result.batch = make_batch(*dataset, *order, step, settings.intra_document, settings.change);
    } catch (...) {
      result.error = std::current_exception();
    }
    return result;
  }

  void restart(int64_t step) {
    ready.clear();
    begin = next = step;
    ++sequence;
  }

  void work() {
    std::unique_lock lock(mutex);
    while (true) {
      wake.wait(lock, [&] { return stop || (begin > 0 && next <= begin + settings.prefetch); });
      if (stop) return;
      const int64_t step = next++, mine = sequence;
      lock.unlock();
      Result result = read(step);
      lock.lock();
      if (mine != sequence) continue;
      ready.emplace(step, std::move(result));
      done.notify_all();
    }
  }

  const std::shared_ptr<const Dataset> dataset;
  const std::shared_ptr<const Order> order;
  const LoaderSettings settings;
  std::mutex mutex;
  std::condition_variable wake, done;
  std::map<int64_t, Result> ready;
  int64_t begin = 0, next = 0;  // begin: the step that take() wants next; 0 before the first
  int64_t sequence = 0;
  bool stop = false;
  double seconds_waited = 0;
  std::vector<std::thread> threads;
};

Loader::Loader(std::shared_ptr<const Dataset> dataset, std::shared_ptr<const Order> order, const LoaderSettings& settings) {
  DZ_CHECK(settings.threads >= 0 && settings.prefetch >= 0, "threads", settings.threads, "prefetch", settings.prefetch);
  DZ_CHECK(order->instances() == dataset->instances(), "order", order->instances(), "data", dataset->instances());
  state_ = std::make_unique<State>(std::move(dataset), std::move(order), settings);
  for (int i = 0; i < settings.threads; ++i) state_->threads.emplace_back([state = state_.get()] { state->work(); });
}

Loader::~Loader() = default;

Batch Loader::take(int64_t step) {
  DZ_CHECK(step >= 1, "step", step);
  const Stopwatch watch;
  State::Result result;
  if (state_->threads.empty()) {
    result = state_->read(step);
  } else {
    std::unique_lock lock(state_->mutex);
    if (step != state_->begin) state_->restart(step);
    state_->wake.notify_all();
    state_->done.wait(lock, [&] { return state_->ready.contains(step); });
    result = std::move(state_->ready.extract(step).mapped());
    // After an error the step can be asked again, and then is read again.
    if (result.error)
      state_->restart(0);
    else
      state_->begin = step + 1;
    state_->wake.notify_all();
  }
  state_->seconds_waited += watch.seconds();
  if (result.error) std::rethrow_exception(result.error);
  return std::move(result.batch);
}

double Loader::seconds_waited() const { return state_->seconds_waited; }

}  // namespace dz::data
