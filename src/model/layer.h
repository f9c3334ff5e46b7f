// One layer of the model: h = h + norm(attention(h)); h = h + norm(mlp(h)).
#pragma once

#include "model/config.h"
#include "model/lane_sums.h"
#include "model/rope_tables.h"
#include "model/weights.h"
#include "model/workspace.h"

namespace dz::model {

// What is the same for all layers of a pass.
struct Pass {
  const ModelConfig& config;
  ThreadPool& pool;
  const RopeTables& rope;  // at least first_query + seq positions
  int64_t instances = 0, seq = 0;
  int64_t first_query = 0;  // tokens before these that the cache holds; then one instance
  const int32_t* first_visible = nullptr;
  int64_t rows() const { return instances * seq; }
};

// x: [rows, d_model], the layer's input; y: its output, may be x. `acts` is filled, all of it when `for_backward`; silu: [rows, d_ff] scratch.
// With first_query > 0, acts.k_turned and acts.v point behind first_query rows of the same kind: the cache.
template <class T>
void layer_forward(const Pass& pass, const LayerWeights<T>& weights, int64_t layer, const T* x, const LayerActivations<T>& acts, T* silu, T* y,
                   bool for_backward);

// The stages that `remat` does not keep, from those that it does.
template <class T>
void layer_recompute(const Pass& pass, const LayerWeights<T>& weights, int64_t layer, const T* x, const LayerActivations<T>& acts, T* silu,
                     Remat remat);

// grads.residual: in, the gradient at the layer's output; out, at its input x. Weight gradients go to `sums`.
template <class T>
void layer_backward(const Pass& pass, const LayerWeights<T>& weights, const LayerIndex& index, int64_t layer, const T* x,
                    const LayerActivations<T>& acts, T* silu, const LayerGradients<T>& grads, LaneSums& sums);

// y = x * weight^T + bias. x: [rows, in], weight: [out, in], bias: [out] or null, y: [rows, out].
template <class T>
void linear_forward(ThreadPool& pool, int64_t rows, int64_t in, int64_t out, const T* x, const T* weight, const float* bias, T* y);

// dy^T * x over the rows of `instances`, 32-row blocks restarting at each instance, into dw. dy: [rows, out], x: [rows, in], dw: [out, in].
template <class T>
void linear_weight_grad(ThreadPool& pool, parallel::Span instances, int64_t seq, int64_t in, int64_t out, const T* dy, const T* x, float* dw,
                        Into into);

// Adds up what a norm's backward pass left over all rows of the batch: chains is [instances, 32-row blocks of seq rows, 2, width].
void norm_weight_grad(ThreadPool& pool, int64_t seq, const float* chains, size_t tensor, LaneSums& sums);

}  // namespace dz::model
