#include "model/layer.h"

#include "base/trace.h"
#include "kernels/attention.h"
#include "kernels/gemm.h"
#include "kernels/rows.h"

namespace dz::model {
namespace {

template <class T>
void turn(const Pass& pass, int64_t layer, int64_t heads, const T* x, const float* weight, T* y, float* rstd) {
  kernels::qk_norm_rope_forward<T>({.rows = pass.rows(),
                                    .heads = heads,
                                    .head_dim = pass.config.head_dim,
                                    .positions = pass.seq,
                                    .first_position = pass.first_query,
                                    .eps = pass.config.rms_norm_eps,
                                    .x = x,
                                    .weight = weight,
                                    .cos = pass.rope.of(layer).cos.data(),
                                    .sin = pass.rope.of(layer).sin.data(),
                                    .y = y,
                                    .rstd = rstd},
                                   pass.pool);
}

kernels::AttentionShape attention_shape(const Pass& pass, int64_t layer) {
  const ModelConfig& config = pass.config;
  return {.instances = pass.instances,
          .keys = pass.first_query + pass.seq,
          .first_query = pass.first_query,
          .heads = config.n_heads,
          .kv_heads = config.n_kv_heads,
          .head_dim = config.head_dim,
          .window = config.window_of(layer),
          .first_visible = pass.first_visible};
}

// One stage of the forward pass, from the stages before it.
template <class T>
struct Forward {
  const Pass& pass;
  const LayerWeights<T>& weights;
  int64_t layer;
  const T* x;
  const LayerActivations<T>& acts;
  T* silu;
  bool for_backward;

  void linear(int64_t in, int64_t out, const T* input, const T* weight, const float* bias, T* y) const {
    linear_forward<T>(pass.pool, pass.rows(), in, out, input, weight, bias, y);
  }
  void norm_and_add(const T* branch, const float* weight, const T* residual, T* y, float* rstd) const {
    kernels::rmsnorm_forward<T>({.rows = pass.rows(),
                                 .width = pass.config.d_model,
                                 .eps = pass.config.rms_norm_eps,
                                 .x = branch,
                                 .weight = weight,
                                 .residual = residual,
                                 .y = y,
                                 .rstd = rstd},
                                pass.pool);
  }
  void attention() const {
    const int64_t cached = pass.first_query * pass.config.kv_width();
    kernels::attention_forward<T>({.shape = attention_shape(pass, layer),
                                   .q = acts.q_turned,
                                   .k = acts.k_turned - cached,
                                   .v = acts.v - cached,
                                   .out = acts.attention,
                                   .row_max = for_backward ? acts.row_max : nullptr,
                                   .row_scale = for_backward ? acts.row_scale : nullptr},
                                  pass.pool);
  }

  void run(Stage stage) const {
    const TraceSpan span(name_of(stage).data());
    const ModelConfig& config = pass.config;
    const int64_t d_model = config.d_model;
    switch (stage) {
      case Stage::kQkv:
        linear(d_model, config.q_width(), x, weights.q, weights.q_bias, acts.q);
        linear(d_model, config.kv_width(), x, weights.k, weights.k_bias, acts.k);
        return linear(d_model, config.kv_width(), x, weights.v, weights.v_bias, acts.v);
      case Stage::kTurned:
        turn<T>(pass, layer, config.n_heads, acts.q, weights.q_norm, acts.q_turned, acts.q_rstd);
        return turn<T>(pass, layer, config.n_kv_heads, acts.k, weights.k_norm, acts.k_turned, acts.k_rstd);
      case Stage::kContext:
        return attention();
      case Stage::kOut:
        return linear(config.q_width(), d_model, acts.attention, weights.o, weights.o_bias, acts.o);
      case Stage::kMiddle:
        return norm_and_add(acts.o, weights.attention_norm, x, acts.middle, acts.o_rstd);
      case Stage::kGateUp:
        linear(d_model, config.d_ff, acts.middle, weights.gate, nullptr, acts.gate);
        return linear(d_model, config.d_ff, acts.middle, weights.up, nullptr, acts.up);
      case Stage::kDown:
        kernels::swiglu_forward<T>({.count = pass.rows() * config.d_ff, .gate = acts.gate, .up = acts.up, .out = silu}, pass.pool);
        return linear(config.d_ff, d_model, silu, weights.down, nullptr, acts.down);
    }
  }
};

// acc (+)= dy * weight; when `residual` is given it becomes residual + acc with one rounding.
template <class T>
void input_grad(const Pass& pass, int64_t in, int64_t out, const T* dy, const T* weight, float* acc, bool accumulate, T* residual) {
  kernels::gemm<T>({.m = pass.rows(),
                    .n = in,
                    .k = out,
                    .a = dy,
                    .a_row = out,
                    .b = weight,
                    .b_row = in,
                    .b_col = 1,
                    .acc = acc,
                    .acc_stride = in,
                    .accumulate = accumulate,
                    .out = residual,
                    .out_stride = in,
                    .add_to_out = residual != nullptr},
                   pass.pool);
}

// dx = dy * weight, rounded. dy: [rows, out], weight: [out, in].
template <class T>
void rounded_input_grad(const Pass& pass, int64_t in, int64_t out, const T* dy, const T* weight, T* dx) {
  kernels::gemm<T>({.m = pass.rows(), .n = in, .k = out, .a = dy, .a_row = out, .b = weight, .b_row = in, .b_col = 1, .out = dx, .out_stride = in},
                   pass.pool);
}

// Gradients of a layer's tensors, with what they all need.
template <class T>
class WeightGrads {
 public:
  WeightGrads(const Pass& pass, LaneSums& sums) : pass_(pass), sums_(sums) {}

  void matrix(size_t index, int64_t in, int64_t out, const T* dy, const T* x) {
    sums_.sum(index, [&](parallel::Span instances, float* sum, Into into) {
      linear_weight_grad<T>(pass_.pool, instances, pass_.seq, in, out, dy, x, sum, into);
    });
  }

  // From the chains that the norm's backward pass left.
  void norm(size_t index, const float* chains) { norm_weight_grad(pass_.pool, pass_.seq, chains, index, sums_); }

  void bias(size_t index, const T* dy) {
    if (index == LayerIndex::kNone) return;
    const int64_t width = sums_.size_of(index);
    sums_.sum_adding(index, [&](parallel::Span instances, float* sum) {
      kernels::bias_grad<T>(
          {.rows = instances.size() * pass_.seq, .width = width, .segment = pass_.seq, .dy = dy + instances.begin * pass_.seq * width, .grad = sum},
          pass_.pool);
    });
  }

 private:
  const Pass& pass_;
  LaneSums& sums_;
};

// Gradients of a norm's input and weight.
template <class T>
void norm_backward(const Pass& pass, size_t index, const T* dy, const T* x, const float* weight, const float* rstd, const LayerGradients<T>& grads,
                   WeightGrads<T>& out) {
  kernels::rmsnorm_backward<T>({.rows = pass.rows(),
                                .width = pass.config.d_model,
                                .segment = pass.seq,
                                .dy = dy,
                                .x = x,
                                .weight = weight,
                                .rstd = rstd,
                                .dx = grads.branch,
                                .chains = grads.chains},
                               pass.pool);
  out.norm(index, grads.chains);
}

template <class T>
void mlp_backward(const Pass& pass, const LayerWeights<T>& weights, const LayerIndex& index, const LayerActivations<T>& acts, T* silu,
                  const LayerGradients<T>& grads, WeightGrads<T>& out) {
  const int64_t d_model = pass.config.d_model, d_ff = pass.config.d_ff, count = pass.rows() * d_ff;
  norm_backward<T>(pass, index.mlp_norm, grads.residual, acts.down, weights.mlp_norm, acts.down_rstd, grads, out);
  rounded_input_grad<T>(pass, d_ff, d_model, grads.branch, weights.down, grads.gate);
  kernels::swiglu_backward<T>(
      {.count = count, .dout = grads.gate, .gate = acts.gate, .up = acts.up, .dgate = grads.gate, .dup = grads.up, .out = silu}, pass.pool);
  out.matrix(index.down, d_ff, d_model, grads.branch, silu);
  out.matrix(index.gate, d_model, d_ff, grads.gate, acts.middle);
  out.matrix(index.up, d_model, d_ff, grads.up, acts.middle);
  input_grad<T>(pass, d_model, d_ff, grads.gate, weights.gate, grads.sum, false, nullptr);
  input_grad<T>(pass, d_model, d_ff, grads.up, weights.up, grads.sum, true, grads.residual);
}

// From the gradient after RoPE (f32) to the one at the projection's output; the norm's weight gradient on the way.
template <class T>
void turn_back(const Pass& pass, int64_t layer, int64_t heads, size_t norm_index, const float* dy, const T* x, const float* weight, const float* rstd,
               T* dx, float* chains, WeightGrads<T>& out) {
  kernels::qk_norm_rope_backward<T>({.rows = pass.rows(),
                                     .heads = heads,
                                     .head_dim = pass.config.head_dim,
                                     .positions = pass.seq,
                                     .dy = dy,
                                     .x = x,
                                     .weight = weight,
                                     .rstd = rstd,
                                     .cos = pass.rope.of(layer).cos.data(),
                                     .sin = pass.rope.of(layer).sin.data(),
                                     .dx = dx,
                                     .chains = chains},
                                    pass.pool);
  out.norm(norm_index, chains);
}

template <class T>
void attention_block_backward(const Pass& pass, const LayerWeights<T>& weights, const LayerIndex& index, int64_t layer, const T* x,
                              const LayerActivations<T>& acts, const LayerGradients<T>& grads, WeightGrads<T>& out) {
  const ModelConfig& config = pass.config;
  const int64_t d_model = config.d_model, q_width = config.q_width(), kv_width = config.kv_width();
  norm_backward<T>(pass, index.attention_norm, grads.residual, acts.o, weights.attention_norm, acts.o_rstd, grads, out);
  out.matrix(index.o, q_width, d_model, grads.branch, acts.attention);
  out.bias(index.o_bias, grads.branch);
  rounded_input_grad<T>(pass, q_width, d_model, grads.branch, weights.o, grads.attention);
  kernels::attention_backward<T>({.shape = attention_shape(pass, layer),
                                  .q = acts.q_turned,
                                  .k = acts.k_turned,
                                  .v = acts.v,
                                  .out = acts.attention,
                                  .dout = grads.attention,
                                  .row_max = acts.row_max,
                                  .row_scale = acts.row_scale,
                                  .dq = grads.q_f32,
                                  .dk = grads.k_f32,
                                  .dv = grads.v},
                                 pass.pool);
  T* dq = grads.attention;  // no longer needed as the gradient of the attention's output
  turn_back<T>(pass, layer, config.n_heads, index.q_norm, grads.q_f32, acts.q, weights.q_norm, acts.q_rstd, dq, grads.chains, out);
  turn_back<T>(pass, layer, config.n_kv_heads, index.k_norm, grads.k_f32, acts.k, weights.k_norm, acts.k_rstd, grads.k, grads.chains, out);
  out.matrix(index.q, d_model, q_width, dq, x);
  out.matrix(index.k, d_model, kv_width, grads.k, x);
  out.matrix(index.v, d_model, kv_width, grads.v, x);
  out.bias(index.q_bias, dq);
  out.bias(index.k_bias, grads.k);
  out.bias(index.v_bias, grads.v);
  input_grad<T>(pass, d_model, q_width, dq, weights.q, grads.sum, false, nullptr);
  input_grad<T>(pass, d_model, kv_width, grads.k, weights.k, grads.sum, true, nullptr);
  input_grad<T>(pass, d_model, kv_width, grads.v, weights.v, grads.sum, true, grads.residual);
}

}  // namespace

template <class T>
void linear_forward(ThreadPool& pool, int64_t rows, int64_t in, int64_t out, const T* x, const T* weight, const float* bias, T* y) {
  kernels::gemm<T>(
      {.m = rows, .n = out, .k = in, .a = x, .a_row = in, .b = weight, .b_row = 1, .b_col = in, .out = y, .out_stride = out, .bias = bias}, pool);
}

template <class T>
void linear_weight_grad(ThreadPool& pool, parallel::Span instances, int64_t seq, int64_t in, int64_t out, const T* dy, const T* x, float* dw,
                        Into into) {
  const int64_t first = instances.begin * seq;
  kernels::gemm<T>({.m = out,
                    .n = in,
                    .k = instances.size() * seq,
                    .a = dy + first * out,
                    .a_row = 1,
                    .a_col = out,
                    .b = x + first * in,
                    .b_row = in,
                    .b_col = 1,
                    .k_segment = seq,
                    .acc = dw,
                    .acc_stride = in,
                    .accumulate = into == Into::kContinue,
                    .join = into == Into::kJoin},
                   pool);
}

void norm_weight_grad(ThreadPool& pool, int64_t seq, const float* chains, size_t tensor, LaneSums& sums) {
  const int64_t width = sums.size_of(tensor), blocks = kernels::row_blocks(seq, seq);
  sums.sum_adding(tensor, [&](parallel::Span instances, float* sum) {
    kernels::norm_weight_grad(
        {.blocks = instances.size() * blocks, .width = width, .chains = chains + 2 * instances.begin * blocks * width, .grad = sum}, pool);
  });
}

template <class T>
void layer_forward(const Pass& pass, const LayerWeights<T>& weights, int64_t layer, const T* x, const LayerActivations<T>& acts, T* silu, T* y,
                   bool for_backward) {
  const Forward<T> forward{pass, weights, layer, x, acts, silu, for_backward};
  for (const Stage stage : kStages) forward.run(stage);
  forward.norm_and_add(acts.down, weights.mlp_norm, acts.middle, y, acts.down_rstd);
}

template <class T>
void layer_recompute(const Pass& pass, const LayerWeights<T>& weights, int64_t layer, const T* x, const LayerActivations<T>& acts, T* silu,
                     Remat remat) {
  const TraceSpan span("recompute");
  const Forward<T> forward{pass, weights, layer, x, acts, silu, true};
  for (const Stage stage : kStages) {
    if (remat.recomputes(stage)) forward.run(stage);
  }
}

template <class T>
void layer_backward(const Pass& pass, const LayerWeights<T>& weights, const LayerIndex& index, int64_t layer, const T* x,
                    const LayerActivations<T>& acts, T* silu, const LayerGradients<T>& grads, LaneSums& sums) {
  WeightGrads<T> out(pass, sums);
  mlp_backward<T>(pass, weights, index, acts, silu, grads, out);
  attention_block_backward<T>(pass, weights, index, layer, x, acts, grads, out);
}

#define DZ_LAYER(T)                                                                                                                          \
  template void linear_forward<T>(ThreadPool&, int64_t, int64_t, int64_t, const T*, const T*, const float*, T*);                             \
  template void linear_weight_grad<T>(ThreadPool&, parallel::Span, int64_t, int64_t, int64_t, const T*, const T*, float*, Into);             \
  template void layer_forward<T>(const Pass&, const LayerWeights<T>&, int64_t, const T*, const LayerActivations<T>&, T*, T*, bool);          \
  template void layer_recompute<T>(const Pass&, const LayerWeights<T>&, int64_t, const T*, const LayerActivations<T>&, T*, Remat);           \
  template void layer_backward<T>(const Pass&, const LayerWeights<T>&, const LayerIndex&, int64_t, const T*, const LayerActivations<T>&, T*, \
                                  const LayerGradients<T>&, LaneSums&);
DZ_LAYER(bf16)
DZ_LAYER(float)
#undef DZ_LAYER

}  // namespace dz::model
