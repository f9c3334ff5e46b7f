#include "model/workspace.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/rows.h"

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

void Arena::note(const char* name, int64_t bytes) {
  const auto found = std::ranges::find(lines_, name, &ArenaLine::name);
  if (found == lines_.end()) {
    lines_.push_back({name, bytes});
  } else {
    found->bytes += bytes;
  }
}

template <class T>
Workspace<T>::Workspace(const ModelConfig& config, const Limits& limits) {
  lay_out(config, limits);
  bytes = arena.bytes();
  arena.allocate();
  lay_out(config, limits);
}

template <class T>
void Workspace<T>::lay_out(const ModelConfig& config, const Limits& limits) {
  DZ_CHECK(limits.max_instances >= 1 && limits.seq >= 1, "max_instances", limits.max_instances, "seq", limits.seq);
  chunk_rows = head_chunk_rows(limits.head_chunk_rows, config.vocab_size, limits.seq);
  const int64_t rows = limits.max_instances * limits.seq;
  residual.clear();
  for (int64_t i = 0; i <= config.n_layers; ++i) {
    // Without a backward pass two buffers take turns.
    residual.push_back(limits.backward || i < 2 ? arena.template take<T>("residual", rows * config.d_model) : residual[static_cast<size_t>(i % 2)]);
  }
  lay_out_layers(config, limits);
  normed = arena.template take<T>("normed", rows * config.d_model);
  final_rstd = arena.template take<float>("rstd", rows);
  for (float** sums : {&ce, &z}) *sums = arena.template take<float>("losses", rows);
  if (limits.backward) gradients.residual = arena.template take<T>("d residual", rows * config.d_model);

  // Logits live between the layers' forward and backward pass, when none of the layers' scratch does.
  const size_t mark = arena.mark();
  logits = arena.template take<float>("logits", chunk_rows * config.vocab_size);
  arena.back_to(mark);
  lay_out_scratch(config, limits);
  arena.to_the_end();
}

template <class T>
void Workspace<T>::lay_out_layers(const ModelConfig& config, const Limits& limits) {
  const int64_t rows = limits.max_instances * limits.seq;
  const auto fill = [&](LayerActivations<T>& layer, auto&& wanted) {
    const auto take = [&](Stage stage, const char* name, T** tensor, int64_t width) {
      if (wanted(stage)) *tensor = arena.template take<T>(name, rows * width);
    };
    take(Stage::kQkv, "q", &layer.q, config.q_width());
    take(Stage::kQkv, "k", &layer.k, config.kv_width());
    take(Stage::kQkv, "v", &layer.v, config.kv_width());
    take(Stage::kTurned, "q turned", &layer.q_turned, config.q_width());
    take(Stage::kTurned, "k turned", &layer.k_turned, config.kv_width());
    take(Stage::kContext, "context", &layer.attention, config.q_width());
    take(Stage::kOut, "out", &layer.o, config.d_model);
    take(Stage::kMiddle, "middle", &layer.middle, config.d_model);
    take(Stage::kGateUp, "gate", &layer.gate, config.d_ff);
    take(Stage::kGateUp, "up", &layer.up, config.d_ff);
    take(Stage::kDown, "down", &layer.down, config.d_model);
  };
  // One set for all layers of what is computed again; without a backward pass, of everything.
  LayerActivations<T> shared;
  const Remat remat = limits.backward ? limits.remat : Remat::kFull;
  fill(shared, [&](Stage stage) { return remat.recomputes(stage); });
  layers.assign(limits.backward ? static_cast<size_t>(config.n_layers) : 1, shared);
  for (LayerActivations<T>& layer : layers) {
    fill(layer, [&](Stage stage) { return !remat.recomputes(stage); });
    for (float** r : {&layer.q_rstd, &layer.k_rstd, &layer.o_rstd, &layer.down_rstd}) *r = arena.template take<float>("rstd", rows);
    for (float** m : {&layer.row_max, &layer.row_scale}) *m = arena.template take<float>("softmax rows", rows * config.n_heads);
  }
}

template <class T>
void Workspace<T>::lay_out_scratch(const ModelConfig& config, const Limits& limits) {
  const int64_t rows = limits.max_instances * limits.seq;
  if (limits.backward) {
    gradients.branch = arena.template take<T>("d branch", rows * config.d_model);
    gradients.sum = arena.template take<float>("d input (f32)", rows * config.d_model);
    const int64_t blocks = limits.max_instances * kernels::row_blocks(limits.seq, limits.seq);
    gradients.chains = arena.template take<float>("norm chains", 2 * blocks * std::max({config.d_model, config.q_width(), config.kv_width()}));
  }
  // The two halves of a layer are never in work at the same time.
  const size_t mark = arena.mark();
  silu = arena.template take<T>("silu", rows * config.d_ff);
  if (!limits.backward) return;
  for (T** mlp : {&gradients.gate, &gradients.up}) *mlp = arena.template take<T>("d gate, d up", rows * config.d_ff);
  arena.back_to(mark);
  gradients.attention = arena.template take<T>("d context, d q", rows * config.q_width());
  for (T** narrow : {&gradients.k, &gradients.v}) *narrow = arena.template take<T>("d k, d v", rows * config.kv_width());
  gradients.q_f32 = arena.template take<float>("d q, d k (f32)", rows * config.q_width());
  gradients.k_f32 = arena.template take<float>("d q, d k (f32)", rows * config.kv_width());
}

template <class T>
std::vector<ArenaLine> activation_lines(const ModelConfig& config, const Limits& limits, int64_t* bytes) {
  Workspace<T> counted;
  counted.lay_out(config, limits);
  *bytes = counted.arena.bytes();
  return counted.arena.lines();
}

template struct Workspace<bf16>;
template struct Workspace<float>;
template std::vector<ArenaLine> activation_lines<bf16>(const ModelConfig&, const Limits&, int64_t*);
template std::vector<ArenaLine> activation_lines<float>(const ModelConfig&, const Limits&, int64_t*);

}  // namespace dz::model
