#include "model/transformer.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "base/error.h"
#include "base/stopwatch.h"
#include "base/trace.h"
#include "kernels/gemm.h"
#include "kernels/loss.h"
#include "kernels/rows.h"
#include "model/lane_sums.h"
#include "model/layer.h"
#include "model/rope_tables.h"
#include "model/weights.h"
#include "model/workspace.h"
#include "numerics/sums.h"

namespace dz::model {
namespace {

void check_batch(const Batch& batch, const Limits& limits, int64_t vocab_size, bool with_targets) {
  DZ_CHECK(batch.instances >= 1 && batch.instances <= limits.max_instances, "instances", batch.instances, "max_instances", limits.max_instances);
  DZ_CHECK(batch.seq >= 1 && batch.seq <= limits.seq, "seq", batch.seq, "longest", limits.seq);
  DZ_CHECK(batch.tokens != nullptr && (batch.targets != nullptr || !with_targets), "with targets", with_targets);
  for (int64_t i = 0; i < batch.instances * batch.seq; ++i) {
    const int32_t token = batch.tokens[i], target = with_targets ? batch.targets[i] : kernels::kMasked;
    const bool known = token >= 0 && token < vocab_size && (target == kernels::kMasked || (target >= 0 && target < vocab_size));
    if (!known) {
      throw DataError(Complaint{"token " + std::to_string(i % batch.seq) + " of instance " + std::to_string(i / batch.seq) + " of the batch",
                                std::to_string(token) + " (the next is " + std::to_string(target) + ")",
                                "numbers below vocab_size, " + std::to_string(vocab_size), "is the data made with another tokenizer?"});
    }
    if (batch.first_visible == nullptr) continue;
    DZ_CHECK(batch.first_visible[i] >= 0 && batch.first_visible[i] <= i % batch.seq, "first_visible", batch.first_visible[i], "at", i % batch.seq);
  }
}

}  // namespace

LaneGroup whole_batch(int64_t instances, int64_t lanes) {
  return {.instances = instances, .lanes = lanes, .micro = {.instances = {0, instances}, .lanes = {0, lanes}}};
}

template <class T>
struct Transformer<T>::State {
  State(const ModelConfig& config_in, const Limits& limits_in, ThreadPool& pool_in)
      : config(config_in), limits(limits_in), pool(pool_in), work(config, limits), sums(pool), rope(config, limits.seq) {}

  Pass pass_of(const Batch& batch) {
    DZ_CHECK(!weights.empty(), "set_weights", "not called");
    return {.config = config, .pool = pool, .rope = rope, .instances = batch.instances, .seq = batch.seq, .first_visible = batch.first_visible};
  }

  // Leaves the input of each layer in work.residual and the normed output of the last in work.normed.
  void forward(const Pass& pass, const Batch& batch, bool for_backward, const HiddenSink& sink);
  void backward(const Pass& pass, const Batch& batch, const ModelIndex& index);

  // Computes the logits of chunks of rows, each of one instance, into work.logits: use(first_row, rows), counted from the start of the batch.
  template <class Use>
  void for_each_chunk(const Pass& pass, parallel::Span instances, Use&& use);
  // With `gradient` work.logits becomes the gradient of the logits (kernels/loss.h).
  void chunk_loss(const Batch& batch, int64_t first_row, int64_t rows, float weight, float z_loss, bool gradient);
  // From that: the head's gradient, and the one at work.normed into work.gradients.residual.
  void chunk_backward(int64_t first_row, int64_t rows, float* dw, Into into);
  void sum_losses(const Batch& batch, LossOut& loss) const;

  const ModelConfig config;
  const Limits limits;
  ThreadPool& pool;
  CastWeights<T> weights;
  Workspace<T> work;
  LaneSums sums;
  RopeTables rope;
};

template <class T>
void Transformer<T>::State::forward(const Pass& pass, const Batch& batch, bool for_backward, const HiddenSink& sink) {
  const TraceSpan span("forward");
  const int64_t rows = pass.rows();
  kernels::embedding_forward<T>({.rows = rows, .width = config.d_model, .tokens = batch.tokens, .table = weights.embedding, .y = work.residual[0]},
                                pool);
  if (sink) sink(0, work.residual[0]);
  for (int64_t i = 0; i < config.n_layers; ++i) {
    const size_t at = static_cast<size_t>(i);
    layer_forward<T>(pass, weights.layers[at], i, work.residual[at], work.of_layer(i), work.silu, work.residual[at + 1], for_backward);
    if (sink) sink(i + 1, work.residual[at + 1]);
  }
  kernels::rmsnorm_forward<T>({.rows = rows,
                               .width = config.d_model,
                               .eps = config.rms_norm_eps,
                               .x = work.residual.back(),
                               .weight = weights.final_norm,
                               .y = work.normed,
                               .rstd = work.final_rstd},
                              pool);
  if (sink) sink(config.n_layers + 1, work.normed);
}

template <class T>
template <class Use>
void Transformer<T>::State::for_each_chunk(const Pass& pass, parallel::Span instances, Use&& use) {
  for (int64_t instance = instances.begin; instance < instances.end; ++instance) {
    for (int64_t row = 0; row < pass.seq; row += work.chunk_rows) {
      const int64_t first = instance * pass.seq + row, rows = std::min(work.chunk_rows, pass.seq - row);
      kernels::gemm<T>({.m = rows,
                        .n = config.vocab_size,
                        .k = config.d_model,
                        .a = work.normed + first * config.d_model,
                        .a_row = config.d_model,
                        .b = weights.head,
                        .b_row = 1,
                        .b_col = config.d_model,
                        .acc = work.logits,
                        .acc_stride = config.vocab_size},
                       pool);
      use(first, rows);
    }
  }
}

template <class T>
void Transformer<T>::State::chunk_loss(const Batch& batch, int64_t first_row, int64_t rows, float weight, float z_loss, bool gradient) {
  // Instance by instance where weights differ: each row's result is its own, so the cut changes no bit.
  for (int64_t row = first_row, end = first_row + rows; row < end;) {
    const int64_t instance = row / batch.seq;
    const int64_t stop = batch.weights ? std::min(end, (instance + 1) * batch.seq) : end;
    kernels::cross_entropy<T>({.rows = stop - row,
                               .vocab = config.vocab_size,
                               .logits = work.logits + (row - first_row) * config.vocab_size,
                               .targets = batch.targets + row,
                               .weight = batch.weights ? batch.weights[instance] : weight,
                               .z_loss = z_loss,
                               .gradient = gradient,
                               .ce = work.ce + row,
                               .z = work.z + row},
                              pool);
    row = stop;
  }
}

template <class T>
void Transformer<T>::State::chunk_backward(int64_t first_row, int64_t rows, float* dw, Into into) {
  const int64_t vocab = config.vocab_size, width = config.d_model;
  const kernels::CrossEntropy<T> loss{.rows = rows, .vocab = vocab, .logits = work.logits};
  kernels::gemm<T>({.m = vocab,
                    .n = width,
                    .k = rows,
                    .a = loss.dlogits(),
                    .a_row = 1,
                    .a_col = loss.dlogits_stride(),
                    .b = work.normed + first_row * width,
                    .b_row = width,
                    .b_col = 1,
                    .acc = dw,
                    .acc_stride = width,
                    .accumulate = into == Into::kContinue,
                    .join = into == Into::kJoin},
                   pool);
  kernels::gemm<T>({.m = rows,
                    .n = width,
                    .k = vocab,
                    .a = loss.dlogits(),
                    .a_row = loss.dlogits_stride(),
                    .b = weights.head,
                    .b_row = width,
                    .b_col = 1,
                    .out = work.gradients.residual + first_row * width,
                    .out_stride = width},
                   pool);
}

template <class T>
void Transformer<T>::State::sum_losses(const Batch& batch, LossOut& loss) const {
  loss.ce.clear();
  loss.z.clear();
  loss.labels = 0;
  for (int64_t instance = 0; instance < batch.instances; ++instance) {
    numerics::RowSum<double> ce, z;
    for (int64_t row = instance * batch.seq; row < (instance + 1) * batch.seq; ++row) {
      ce.add(double{work.ce[row]});
      z.add(double{work.z[row]});
      loss.labels += batch.targets[row] != kernels::kMasked ? 1 : 0;
    }
    loss.ce.push_back(ce.total());
    loss.z.push_back(z.total());
  }
}

// Begins with the gradient at the final norm's output, in work.gradients.residual.
template <class T>
void Transformer<T>::State::backward(const Pass& pass, const Batch& batch, const ModelIndex& index) {
  const TraceSpan span("backward");
  const int64_t width = config.d_model;
  T* residual = work.gradients.residual;
  const T* last = work.residual.back();
  kernels::rmsnorm_backward<T>({.rows = pass.rows(),
                                .width = width,
                                .segment = pass.seq,
                                .dy = residual,
                                .x = last,
                                .weight = weights.final_norm,
                                .rstd = work.final_rstd,
                                .dx = residual,
                                .chains = work.gradients.chains},
                               pool);
  norm_weight_grad(pool, pass.seq, work.gradients.chains, index.final_norm, sums);
  for (int64_t i = config.n_layers - 1; i >= 0; --i) {
    const size_t at = static_cast<size_t>(i);
    // What the last layer computed is still there.
    const bool kept = limits.remat == Remat::kNone || i == config.n_layers - 1;
    if (!kept) layer_recompute<T>(pass, weights.layers[at], i, work.residual[at], work.of_layer(i), work.silu, limits.remat);
    layer_backward<T>(pass, weights.layers[at], index.layers[at], i, work.residual[at], work.of_layer(i), work.silu, work.gradients, sums);
  }
  const std::span tokens(batch.tokens, static_cast<size_t>(pass.rows()));
  sums.sum_rows(index.embedding, tokens, width, [&](parallel::Span instances, const int32_t* rows, float* sum) {
    const int64_t first = instances.begin * pass.seq;
    kernels::embedding_grad<T>(
        {.rows = instances.size() * pass.seq, .width = width, .tokens = rows + first, .dy = residual + first * width, .grad = sum}, pool);
  });
}

template <class T>
Transformer<T>::Transformer(const ModelConfig& config, const Limits& limits, ThreadPool& pool)
    : state_(std::make_unique<State>(config, limits, pool)) {}

template <class T>
Transformer<T>::Transformer(Transformer&&) noexcept = default;

template <class T>
Transformer<T>::~Transformer() = default;

template <class T>
void Transformer<T>::set_weights(const Parameters& parameters) {
  state_->weights.set(state_->config, parameters, state_->pool);
}

template <class T>
void Transformer<T>::forward_backward(const Batch& batch, float weight, float z_loss, const LaneGroup& lanes, const GradientNodes& gradients,
                                      LossOut& loss) {
  State& state = *state_;
  DZ_CHECK(state.limits.backward, "limits.backward", false);
  check_batch(batch, state.limits, state.config.vocab_size, true);
  const Pass pass = state.pass_of(batch);
  state.sums.begin(lanes, batch.instances, gradients);
  const Parameters& shape = state.sums.shape();
  Stopwatch watch;
  state.forward(pass, batch, true, nullptr);
  loss.forward_seconds = watch.lap();
  {
    const TraceSpan span("head");
    const auto part = [&](parallel::Span instances, float* sum, Into into) {
      state.for_each_chunk(pass, instances, [&](int64_t first_row, int64_t rows) {
        state.chunk_loss(batch, first_row, rows, weight, z_loss, true);
        state.chunk_backward(first_row, rows, sum, into);
        into = Into::kContinue;
      });
    };
    state.sums.sum(shape.head_index(), part, most_joined_by_head(state.work.chunk_rows, pass.seq));
    state.sum_losses(batch, loss);
  }
  loss.head_seconds = watch.lap();
  state.backward(pass, batch, ModelIndex(state.config, shape));
  loss.backward_seconds = watch.lap();
}

template <class T>
void Transformer<T>::forward_loss(const Batch& batch, LossOut& loss) {
  State& state = *state_;
  check_batch(batch, state.limits, state.config.vocab_size, true);
  const Pass pass = state.pass_of(batch);
  state.forward(pass, batch, false, nullptr);
  state.for_each_chunk(pass, {0, batch.instances},
                       [&](int64_t first_row, int64_t rows) { state.chunk_loss(batch, first_row, rows, 0.0f, 0.0f, false); });
  state.sum_losses(batch, loss);
}

template <class T>
void Transformer<T>::forward_logits(const Batch& batch, const LogitsSink& sink, const HiddenSink& hidden) {
  State& state = *state_;
  check_batch(batch, state.limits, state.config.vocab_size, false);
  const Pass pass = state.pass_of(batch);
  state.forward(pass, batch, false, hidden);
  state.for_each_chunk(pass, {0, batch.instances}, [&](int64_t first_row, int64_t rows) { sink(first_row, rows, state.work.logits); });
}

template <class T>
void Transformer<T>::forward_hidden(const Batch& batch, const HiddenSink& sink) {
  State& state = *state_;
  check_batch(batch, state.limits, state.config.vocab_size, false);
  state.forward(state.pass_of(batch), batch, false, sink);
}

template <class T>
int64_t Transformer<T>::activation_bytes() const {
  return state_->work.bytes;
}

template <class T>
int64_t Transformer<T>::lane_buffer_bytes() const {
  return state_->sums.bytes();
}

template class Transformer<bf16>;
template class Transformer<float>;

}  // namespace dz::model
