// The OLMo model, forward and backward, written out: h = h + norm(attention(h)); h = h + norm(mlp(h)); then norm, head and loss.
// Rounding points and the order of every sum: docs/numerics.md. How a batch is cut into micro-batches, how many threads there are and
// whether activations are kept or computed again never changes a bit.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/dtype.h"
#include "model/config.h"
#include "model/parameters.h"
#include "model/remat.h"
#include "parallel/lanes.h"

namespace dz {
class ThreadPool;
}

namespace dz::model {

// A micro-batch. Tokens must be < vocab_size, targets too or kernels::kMasked (-1): DataError otherwise.
struct Batch {
  int64_t instances = 0, seq = 0;
  const int32_t* tokens = nullptr;         // [instances, seq]
  const int32_t* targets = nullptr;        // [instances, seq]: the token after each, or kMasked; null only for logits
  const int32_t* first_visible = nullptr;  // [instances, seq]: first position of a token's document (rises within an instance); null: 0
  const float* weights = nullptr;          // [instances]: of the loss of each; null: the `weight` of the call for all
};

// Which part of the global batch a micro-batch is.
struct LaneGroup {
  int64_t instances = 0;  // of the global batch
  int64_t lanes = 1;      // V of the recipe
  parallel::MicroBatch micro;
};

// Where the gradient of a micro-batch goes: to `own`, or, when that is null, onto the first of `left`. `left`: finished nodes of the lane tree that
// it is the right side of, innermost first; it is added to the first, that one to the next, up to the last, and only the last is valid afterwards.
struct GradientNodes {
  GradientNodes() = default;
  GradientNodes(Parameters& gradients) : own(&gradients) {}  // a micro-batch that completes nothing
  Parameters* own = nullptr;
  std::vector<Parameters*> left;
};

// A whole batch as one micro-batch.
LaneGroup whole_batch(int64_t instances, int64_t lanes);

struct LossOut {
  std::vector<double> ce, z;  // [instances]: sums over the tokens of an instance; z before its multiplier
  int64_t labels = 0;         // targets that are not masked
  // Of forward_backward: the layers forward; head and loss, both ways; the layers backward.
  double forward_seconds = 0, head_seconds = 0, backward_seconds = 0;
};

struct Limits {
  int64_t max_instances = 1;    // of a micro-batch
  int64_t seq = 0;              // longest instance
  int64_t head_chunk_rows = 0;  // rows of logits at a time, a multiple of 32; 0: head_chunk_rows chooses
  Remat remat = Remat::kNone;   // without `backward` nothing is kept
  bool backward = true;         // false: no space for gradients (evaluation)
};

// T: bf16 or float.
template <class T>
class Transformer {
 public:
  Transformer(const ModelConfig& config, const Limits& limits, ThreadPool& pool);
  Transformer(Transformer&&) noexcept;
  ~Transformer();

  // Casts the weights for the steps until the next call. `parameters` must outlive their use: norms and biases are read in place.
  void set_weights(const Parameters& parameters);

  // Gradients of sum(weight * (ce + z_loss * z)) over the labels of the micro-batch.
  // A micro-batch inside one lane goes on with the chain in `gradients.own`, or starts it at +0 when it is the lane's first part; one of several
  // lanes leaves the root of their tree there. Either way nothing else of it is read. One that is all of its lanes and completes nodes needs no
  // gradient of its own.
  void forward_backward(const Batch& batch, float weight, float z_loss, const LaneGroup& lanes, const GradientNodes& gradients, LossOut& loss);

  void forward_loss(const Batch& batch, LossOut& loss);

  // The residual stream: index 0 the embedding, i after layer i, n_layers + 1 after the final norm. hidden: [rows, d_model].
  using HiddenSink = std::function<void(int64_t index, const T* hidden)>;
  void forward_hidden(const Batch& batch, const HiddenSink& sink);

  // logits: [rows, vocab_size] f32 of the rows [first_row, first_row + rows) of the batch, in order; before them `hidden`, when it is given.
  using LogitsSink = std::function<void(int64_t first_row, int64_t rows, const float* logits)>;
  void forward_logits(const Batch& batch, const LogitsSink& sink, const HiddenSink& hidden = nullptr);

  int64_t activation_bytes() const;   // of the arena, known before it is allocated
  int64_t lane_buffer_bytes() const;  // for lanes that wait for their neighbours, as far as they were needed

 private:
  struct State;
  std::unique_ptr<State> state_;
};

extern template class Transformer<bf16>;
extern template class Transformer<float>;

}  // namespace dz::model
