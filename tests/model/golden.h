// Reads the model goldens: checkpoints as models, and tensors of the files beside them in the type that a test needs.
#pragma once

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/file.h"
#include "checkpoint/safetensors.h"
#include "model/load.h"
#include "model/transformer.h"

namespace dz::model::test {

inline const char* const kVariants[] = {"base", "gqa", "head_dim", "tied", "bias", "olmo2", "yarn"};

inline fs::path golden(const std::string& name) { return fs::path(DZ_GOLDEN) / "model" / name; }

class GoldenFile {
 public:
  explicit GoldenFile(const std::string& name) : source_(checkpoint::TensorSource::open(golden(name))) {}

  bool has(const std::string& name) const { return source_.find(name) != nullptr; }
  Shape shape(const std::string& name) const { return source_.at(name).shape; }
  const std::vector<checkpoint::StoredTensor>& tensors() const { return source_.tensors(); }

  // F32, F64, BF16 as double.
  std::vector<double> numbers(const std::string& name) const {
    const checkpoint::StoredTensor& stored = source_.at(name);
    if (stored.dtype == "F64") return raw<double>(stored);
    std::vector<float> values(static_cast<size_t>(stored.elements()));
    source_.read_f32(stored, values);
    return {values.begin(), values.end()};
  }

  std::vector<int32_t> tokens(const std::string& name) const {
    const checkpoint::StoredTensor& stored = source_.at(name);
    if (stored.dtype == "I32") return raw<int32_t>(stored);
    std::vector<int32_t> out;
    for (const int64_t value : raw<int64_t>(stored)) out.push_back(static_cast<int32_t>(value));
    return out;
  }

 private:
  template <class V>
  std::vector<V> raw(const checkpoint::StoredTensor& stored) const {
    std::vector<V> values(static_cast<size_t>(stored.elements()));
    source_.read(stored, std::as_writable_bytes(std::span(values)));
    return values;
  }

  checkpoint::TensorSource source_;
};

// The targets of the mean shifted cross entropy: the next token, nothing after the last.
inline std::vector<int32_t> shifted(const std::vector<int32_t>& tokens, int64_t seq) {
  std::vector<int32_t> targets(tokens.size(), -1);
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    if ((static_cast<int64_t>(i) + 1) % seq != 0) targets[i] = tokens[i + 1];
  }
  return targets;
}

inline double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double value : values) most = std::max(most, std::abs(value));
  return most;
}

// NaN when the sizes differ or a NaN is among them, so that no comparison with a tolerance holds.
template <class A, class B>
double max_difference(const A& a, const B& b) {
  if (a.size() != b.size()) return std::nan("");
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(difference <= most)) most = difference;
    if (std::isnan(most)) return most;
  }
  return most;
}

template <class T>
std::vector<float> logits_of(Transformer<T>& model, const Batch& batch, int64_t vocab) {
  std::vector<float> out;
  model.forward_logits(batch, [&](int64_t, int64_t rows, const float* logits) { out.insert(out.end(), logits, logits + rows * vocab); });
  return out;
}

}  // namespace dz::model::test
