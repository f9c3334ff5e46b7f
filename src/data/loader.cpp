#include "data/loader.h"

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "base/check.h"

namespace dz::data {
namespace {

void mark_documents(const Dataset& dataset, Batch& batch) {
  batch.first_visible.resize(batch.tokens.size());
  for (int64_t i = 0; i < batch.instances; ++i) {
    const size_t row = static_cast<size_t>(i * batch.sequence_length);
    int32_t start = 0;
    for (int32_t j = 0; j < static_cast<int32_t>(batch.sequence_length); ++j) {
      const size_t at = row + static_cast<size_t>(j);
      batch.first_visible[at] = start;
      if (batch.tokens[at] == dataset.eos_id()) start = j + 1;  // the EOS still belongs to its document
    }
  }
}

Digest128 digest_of(const Batch& batch) {
  const auto ids = std::as_bytes(std::span(batch.ids)), tokens = std::as_bytes(std::span(batch.tokens));
  std::vector<std::byte> bytes(ids.begin(), ids.end());
  bytes.insert(bytes.end(), tokens.begin(), tokens.end());
  return xxh3_128(bytes);
}

}  // namespace

Batch make_batch(const Dataset& dataset, std::vector<int64_t> ids, bool intra_document) {
  Batch batch;
  batch.instances = static_cast<int64_t>(ids.size());
  batch.sequence_length = dataset.sequence_length();
  batch.ids = std::move(ids);
  const auto length = static_cast<size_t>(batch.sequence_length);
  batch.tokens.resize(batch.ids.size() * length);
  batch.targets.resize(batch.tokens.size());
  for (size_t i = 0; i < batch.ids.size(); ++i) {
    const std::span<int32_t> row = std::span(batch.tokens).subspan(i * length, length);
    dataset.read(batch.ids[i], row);
    std::memcpy(batch.targets.data() + i * length, row.data() + 1, (length - 1) * sizeof(int32_t));
    batch.targets[(i + 1) * length - 1] = kNoTarget;
  }
  batch.labels = batch.instances * (batch.sequence_length - 1);
  if (intra_document) mark_documents(dataset, batch);
  batch.digest = digest_of(batch);
  return batch;
}

Batch make_batch(const Dataset& dataset, const Order& order, int64_t step, bool intra_document) {
  Batch batch = make_batch(dataset, order.batch(step), intra_document);
  batch.step = step;
  return batch;
}

// Workers take steps in turn from the window [begin, begin + prefetch]; a batch read for a sequence that was given up is thrown away.
struct Loader::State {
  struct Result {
    Batch batch;
    std::exception_ptr error;
  };

  State(std::shared_ptr<const Dataset> data, const Order& order_of_run, const LoaderSettings& chosen)
      : dataset(std::move(data)), order(order_of_run), settings(chosen) {}

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
      result.batch = make_batch(*dataset, order, step, settings.intra_document);
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
  const Order order;
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

Loader::Loader(std::shared_ptr<const Dataset> dataset, const Order& order, const LoaderSettings& settings) {
  DZ_CHECK(settings.threads >= 0 && settings.prefetch >= 0, "threads", settings.threads, "prefetch", settings.prefetch);
  DZ_CHECK(order.instances() == dataset->instances(), "order", order.instances(), "data", dataset->instances());
  state_ = std::make_unique<State>(std::move(dataset), order, settings);
  for (int i = 0; i < settings.threads; ++i) state_->threads.emplace_back([state = state_.get()] { state->work(); });
}

Loader::~Loader() = default;

Batch Loader::take(int64_t step) {
  DZ_CHECK(step >= 1, "step", step);
  const auto start = std::chrono::steady_clock::now();
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
  state_->seconds_waited += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (result.error) std::rethrow_exception(result.error);
  return std::move(result.batch);
}

double Loader::seconds_waited() const { return state_->seconds_waited; }

}  // namespace dz::data
