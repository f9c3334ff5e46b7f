#include "model/workspace.h"

#include <algorithm>

#include "base/check.h"

namespace dz::model {

int64_t head_chunk_rows(int64_t wanted, int64_t vocab_size, int64_t seq) {
  // A chunk reads the head's weights twice and its gradient once and writes that: many rows for each of those trips. 512 MB of logits are 1,337
  // rows of the largest vocabulary in use, where the products take ten times as long as the trips.
  constexpr int64_t kBytes = int64_t{512} << 20;
  constexpr int64_t kBlock = 32;  // a chunk holds whole 32-row blocks, so that dW adds the same blocks whatever the chunk
  const auto blocks = [](int64_t rows) { return (rows + kBlock - 1) / kBlock; };
  if (wanted == 0) {
    const int64_t most = std::max(kBlock, kBytes / (static_cast<int64_t>(sizeof(float)) * vocab_size) / kBlock * kBlock);
    const int64_t chunks = (seq + most - 1) / most;
    wanted = blocks((seq + chunks - 1) / chunks) * kBlock;
  }
  DZ_CHECK(wanted > 0 && wanted % kBlock == 0, "head_chunk_rows", wanted);
  return std::min(wanted, blocks(seq) * kBlock);
}

template <class T>
Workspace<T>::Workspace(const ModelConfig& config, const Limits& limits) {
  DZ_CHECK(limits.max_instances >= 1 && limits.seq >= 1, "max_instances", limits.max_instances, "seq", limits.seq);
  chunk_rows = head_chunk_rows(limits.head_chunk_rows, config.vocab_size, limits.seq);
  lay_out(config, limits);
  bytes = arena.bytes();
  arena.allocate();
  lay_out(config, limits);
}

template <class T>
void Workspace<T>::lay_out(const ModelConfig& config, const Limits& limits) {
  const int64_t rows = limits.max_instances * limits.seq;
  const bool keep = limits.backward && limits.remat == Remat::kNone;
  const bool keep_inputs = limits.backward;
  residual.clear();
  for (int64_t i = 0; i <= config.n_layers; ++i) {
    // Without a backward pass two buffers take turns.
    residual.push_back(keep_inputs || i < 2 ? arena.template take<T>(rows * config.d_model) : residual[static_cast<size_t>(i % 2)]);
  }
  layers.assign(keep ? static_cast<size_t>(config.n_layers) : 1, {});
  for (LayerActivations<T>& layer : layers) {
    for (T** wide : {&layer.q, &layer.q_turned, &layer.attention}) *wide = arena.template take<T>(rows * config.q_width());
    for (T** narrow : {&layer.k, &layer.k_turned, &layer.v}) *narrow = arena.template take<T>(rows * config.kv_width());
    for (T** stream : {&layer.o, &layer.middle, &layer.down}) *stream = arena.template take<T>(rows * config.d_model);
    for (T** mlp : {&layer.gate, &layer.up}) *mlp = arena.template take<T>(rows * config.d_ff);
    for (float** r : {&layer.q_rstd, &layer.k_rstd, &layer.o_rstd, &layer.down_rstd}) *r = arena.template take<float>(rows);
    for (float** m : {&layer.row_max, &layer.row_scale}) *m = arena.template take<float>(rows * config.n_heads);
  }
  silu = arena.template take<T>(rows * config.d_ff);
  normed = arena.template take<T>(rows * config.d_model);
  final_rstd = arena.template take<float>(rows);
  logits = arena.template take<float>(chunk_rows * config.vocab_size);
  for (float** sums : {&ce, &z}) *sums = arena.template take<float>(rows);
  if (!limits.backward) return;
  for (T** stream : {&gradients.residual, &gradients.branch}) *stream = arena.template take<T>(rows * config.d_model);
  for (T** mlp : {&gradients.gate, &gradients.up}) *mlp = arena.template take<T>(rows * config.d_ff);
  gradients.attention = arena.template take<T>(rows * config.q_width());
  for (T** narrow : {&gradients.k, &gradients.v}) *narrow = arena.template take<T>(rows * config.kv_width());
  gradients.q_f32 = arena.template take<float>(rows * config.q_width());
  gradients.k_f32 = arena.template take<float>(rows * config.kv_width());
  gradients.sum = arena.template take<float>(rows * config.d_model);
}

template struct Workspace<bf16>;
template struct Workspace<float>;

}  // namespace dz::model
