// The weights of a step in the compute type: matrices cast once; the embedding, norms and biases read in place as float32.
#pragma once

#include <cstddef>
#include <vector>

#include "base/dtype.h"
#include "base/large_memory.h"
#include "model/config.h"
#include "model/parameters.h"

namespace dz::model {

// Where the tensors of a layer are in Parameters.
struct LayerIndex {
  static constexpr size_t kNone = static_cast<size_t>(-1);
  size_t q = kNone, k = kNone, v = kNone, o = kNone, gate = kNone, up = kNone, down = kNone;
  size_t q_norm = kNone, k_norm = kNone, attention_norm = kNone, mlp_norm = kNone;
  size_t q_bias = kNone, k_bias = kNone, v_bias = kNone, o_bias = kNone;  // kNone without attention_bias
};

struct ModelIndex {
  ModelIndex(const ModelConfig& config, const Parameters& parameters);
  size_t embedding = 0, final_norm = 0;
  size_t head = 0;  // the embedding when it is tied
  std::vector<LayerIndex> layers;
};

template <class T>
struct LayerWeights {
  const T *q = nullptr, *k = nullptr, *v = nullptr, *o = nullptr, *gate = nullptr, *up = nullptr, *down = nullptr;
  const float *q_norm = nullptr, *k_norm = nullptr, *attention_norm = nullptr, *mlp_norm = nullptr;
  const float *q_bias = nullptr, *k_bias = nullptr, *v_bias = nullptr, *o_bias = nullptr;
};

// Elements of the matrices that a forward pass multiplies with: all linear layers and the head, which is the embedding when that is tied.
int64_t matrix_elements(const ModelConfig& config);

template <class T>
class CastWeights {
 public:
  void set(const ModelConfig& config, const Parameters& parameters, ThreadPool& pool);

  bool empty() const { return layers.empty(); }
  const float* embedding = nullptr;
  const T* head = nullptr;
  const float* final_norm = nullptr;
  std::vector<LayerWeights<T>> layers;

 private:
  LargeVector<T> cast_;  // unused for float, whose matrices are read in place
};

}  // namespace dz::model
