#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/thread_pool.h"
#include "checkpoint/safetensors.h"
#include "model/parity.h"
#include "model/transformer.h"

namespace dz::model {
namespace {

using checkpoint::StoredTensor;
using checkpoint::TensorSource;

constexpr std::string_view kIds = ".input_ids", kLogits = ".logits";
constexpr int64_t kMaxSeq = int64_t{1} << 20;  // as far as the table of cosines goes

struct Pair {
  std::string name;
  const StoredTensor* ids;
  const StoredTensor* logits;
  int64_t instances, seq;
};

[[noreturn]] void fail(const TensorSource& source, const StoredTensor& tensor, const std::string& found, const std::string& expected,
                       const std::string& hint = "") {
  throw DataError(Complaint{source.path_of(tensor).string() + ": " + tensor.name, found, expected, hint});
}

Pair check_pair(const TensorSource& source, std::string name, const StoredTensor& ids, const StoredTensor& logits, int64_t vocab) {
  Shape rows = logits.shape;
  if (ids.shape.empty() || ids.shape.size() > 2)
    fail(source, ids, std::to_string(ids.shape.size()) + " dimensions", "[tokens] or [instances, tokens]");
  if (rows.empty() || rows.back() != vocab) {
    fail(source, logits, rows.empty() ? "no dimensions" : std::to_string(rows.back()) + " columns",
         "the model's vocab_size, " + std::to_string(vocab), "the golden logits are of another model");
  }
  rows.pop_back();
  if (rows != ids.shape) fail(source, logits, "other rows than " + ids.name, "one row of logits a token");
  Pair pair{std::move(name), &ids, &logits, ids.shape.size() == 2 ? ids.shape[0] : 1, ids.shape.back()};
  if (pair.instances < 1 || pair.seq < 1 || pair.seq > kMaxSeq)
    fail(source, ids, "an instance of " + std::to_string(pair.seq) + " tokens", "1 to " + std::to_string(kMaxSeq));
  return pair;
}

std::vector<Pair> find_pairs(const TensorSource& source, int64_t vocab) {
  std::vector<Pair> pairs;
  for (const StoredTensor& ids : source.tensors()) {
    if (!ids.name.ends_with(kIds)) continue;
    std::string name = ids.name.substr(0, ids.name.size() - kIds.size());
    const StoredTensor* logits = source.find(name + std::string(kLogits));
    if (logits != nullptr) pairs.push_back(check_pair(source, std::move(name), ids, *logits, vocab));
  }
  // T9 before T48: by number where names are equal up to it.
  std::ranges::sort(pairs, [](const Pair& a, const Pair& b) { return std::pair(a.name.size(), a.name) < std::pair(b.name.size(), b.name); });
  return pairs;
}

template <class V>
std::vector<int64_t> read_as(const TensorSource& source, const StoredTensor& tensor) {
  std::vector<V> values(static_cast<size_t>(tensor.elements()));
  source.read(tensor, std::as_writable_bytes(std::span(values)));
  return {values.begin(), values.end()};
}

std::vector<int32_t> read_tokens(const TensorSource& source, const StoredTensor& tensor, int64_t vocab) {
  std::vector<int64_t> values;
  if (tensor.dtype == "I64") {
    values = read_as<int64_t>(source, tensor);
  } else if (tensor.dtype == "I32") {
    values = read_as<int32_t>(source, tensor);
  } else {
    fail(source, tensor, "type " + tensor.dtype, "I64 or I32");
  }
  for (const int64_t value : values) {
    if (value < 0 || value >= vocab) fail(source, tensor, "token " + std::to_string(value), "tokens below vocab_size, " + std::to_string(vocab));
  }
  return {values.begin(), values.end()};
}

}  // namespace

template <class T>
std::vector<ParityPair> compare_with_golden(const LoadedModel& model, const fs::path& golden, ThreadPool& pool) {
  const TensorSource source = TensorSource::open(golden);
  const int64_t vocab = model.config.vocab_size;
  const std::vector<Pair> pairs = find_pairs(source, vocab);
  std::vector<ParityPair> results;
  if (pairs.empty()) return results;
  const int64_t longest = std::ranges::max_element(pairs, {}, &Pair::seq)->seq;
  Transformer<T> transformer(model.config, {.max_instances = 1, .seq = longest, .backward = false}, pool);
  transformer.set_weights(model.parameters);
  for (const Pair& pair : pairs) {
    const std::vector<int32_t> tokens = read_tokens(source, *pair.ids, vocab);
    std::vector<float> wanted(static_cast<size_t>(pair.logits->elements()));
    source.read_f32(*pair.logits, wanted);
    Parity parity(vocab);
    for (int64_t instance = 0; instance < pair.instances; ++instance) {
      const Batch batch{.instances = 1, .seq = pair.seq, .tokens = tokens.data() + instance * pair.seq};
      transformer.forward_logits(batch, [&](int64_t first_row, int64_t rows, const float* logits) {
        parity.add(rows, wanted.data() + (instance * pair.seq + first_row) * vocab, logits);
      });
    }
    results.push_back({pair.name, parity.stats()});
  }
  return results;
}

template std::vector<ParityPair> compare_with_golden<bf16>(const LoadedModel&, const fs::path&, ThreadPool&);
template std::vector<ParityPair> compare_with_golden<float>(const LoadedModel&, const fs::path&, ThreadPool&);

}  // namespace dz::model
