#include "model/decode.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "base/error.h"
#include "base/large_memory.h"
#include "kernels/attention.h"
#include "kernels/gemm.h"
#include "kernels/rows.h"
#include "model/layer.h"
#include "model/rope_tables.h"
#include "model/weights.h"
#include "model/workspace.h"

namespace dz::model {
namespace {

// Rows of a prompt that are computed at once: enough to keep the matrix products busy, and a bound on the memory of activations.
// The weights pass through the caches once for each.
constexpr int64_t kMaxRows = 1024;
// Rows that a sliding layer's memory has besides: when they are used up, its window moves to the front.
constexpr int64_t kSpareRows = 256;

// Keys and values of one layer. A sliding layer keeps the tiles that its window still touches and lets the rest go, so its memory does not grow
// with the sequence; rows are found at their absolute position less `first`, a multiple of the attention tile, and no tile before it is ever read.
template <class T>
struct LayerCache {
  LayerCache(int64_t capacity, int64_t window_in, int64_t width_in)
      : window(window_in),
        width(width_in),
        rows(window > 0 ? std::min(capacity, window + kernels::kAttentionTile + kMaxRows + kSpareRows) : capacity) {
    keys.resize(static_cast<size_t>(rows * width));
    values.resize(static_cast<size_t>(rows * width));
  }

  // Makes room for `count` rows behind the `length` that the sequence has.
  void reserve(int64_t length, int64_t count) {
    if (length + count <= first + rows) return;
    const int64_t next = std::max<int64_t>(0, length - window + 1) / kernels::kAttentionTile * kernels::kAttentionTile;
    DZ_CHECK(window > 0 && length + count <= next + rows, "rows", rows, "length", length, "new", count);
    for (LargeVector<T>* of : {&keys, &values}) std::copy(of->begin() + (next - first) * width, of->begin() + (length - first) * width, of->begin());
    first = next;
  }

  T* key(int64_t position) { return keys.data() + (position - first) * width; }
  T* value(int64_t position) { return values.data() + (position - first) * width; }

  int64_t window, width, rows;
  int64_t first = 0;            // position of row 0
  LargeVector<T> keys, values;  // [rows, width]
};

}  // namespace

template <class T>
struct Decoder<T>::State {
  State(const ModelConfig& config_in, int64_t capacity_in, ThreadPool& pool_in)
      : config(config_in),
        capacity(capacity_in),
        pool(pool_in),
        work(config, {.max_instances = 1, .seq = std::min(capacity, kMaxRows), .head_chunk_rows = 32, .backward = false}),
        rope(config, capacity) {
    for (int64_t i = 0; i < config.n_layers; ++i) caches.emplace_back(capacity, config.window_of(i), config.kv_width());
  }

  // Leaves the residual stream after the last layer in work.residual.back().
  void forward(std::span<const int32_t> tokens);
  void head(int64_t row);

  const ModelConfig config;
  const int64_t capacity;
  ThreadPool& pool;
  CastWeights<T> weights;
  Workspace<T> work;
  RopeTables rope;
  std::vector<LayerCache<T>> caches;  // one a layer
  int64_t length = 0;
};

template <class T>
void Decoder<T>::State::forward(std::span<const int32_t> tokens) {
  const Pass pass{.config = config, .pool = pool, .rope = rope, .instances = 1, .seq = static_cast<int64_t>(tokens.size()), .first_query = length};
  kernels::embedding_forward<T>(
      {.rows = pass.rows(), .width = config.d_model, .tokens = tokens.data(), .table = weights.embedding, .y = work.residual[0]}, pool);
  for (int64_t i = 0; i < config.n_layers; ++i) {
    const size_t at = static_cast<size_t>(i);
    LayerActivations<T> acts = work.of_layer(i);
    caches[at].reserve(length, pass.seq);
    acts.k_turned = caches[at].key(length);
    acts.v = caches[at].value(length);
    layer_forward<T>(pass, weights.layers[at], i, work.residual[at], acts, work.silu, work.residual[at + 1], false);
  }
  length += pass.seq;
}

template <class T>
void Decoder<T>::State::head(int64_t row) {
  kernels::rmsnorm_forward<T>({.rows = 1,
                               .width = config.d_model,
                               .eps = config.rms_norm_eps,
                               .x = work.residual.back() + row * config.d_model,
                               .weight = weights.final_norm,
                               .y = work.normed,
                               .rstd = work.final_rstd},
                              pool);
  kernels::gemm<T>({.m = 1,
                    .n = config.vocab_size,
                    .k = config.d_model,
                    .a = work.normed,
                    .a_row = config.d_model,
                    .b = weights.head,
                    .b_row = 1,
                    .b_col = config.d_model,
                    .acc = work.logits,
                    .acc_stride = config.vocab_size},
                   pool);
}

template <class T>
Decoder<T>::Decoder(const ModelConfig& config, int64_t capacity, ThreadPool& pool) : state_(std::make_unique<State>(config, capacity, pool)) {}

template <class T>
Decoder<T>::~Decoder() = default;

template <class T>
void Decoder<T>::set_weights(const Parameters& parameters) {
  state_->weights.set(state_->config, parameters, state_->pool);
  reset();
}

template <class T>
void Decoder<T>::reset() {
  state_->length = 0;
  for (LayerCache<T>& cache : state_->caches) cache.first = 0;
}

template <class T>
int64_t Decoder<T>::length() const {
  return state_->length;
}

template <class T>
std::span<const float> Decoder<T>::append(std::span<const int32_t> tokens) {
  State& state = *state_;
  DZ_CHECK(!tokens.empty() && !state.weights.empty(), "tokens", tokens.size());
  DZ_CHECK(state.length + static_cast<int64_t>(tokens.size()) <= state.capacity, "length", state.length, "new", tokens.size(), "capacity",
           state.capacity);
  for (const int32_t token : tokens) {
    if (token >= 0 && token < state.config.vocab_size) continue;
    throw DataError(Complaint{"prompt", "token " + std::to_string(token), "tokens below vocab_size, " + std::to_string(state.config.vocab_size),
                              "is the tokenizer that of the model?"});
  }
  size_t rows = 0;
  for (; !tokens.empty(); tokens = tokens.subspan(rows)) {
    rows = std::min(tokens.size(), static_cast<size_t>(kMaxRows));
    state.forward(tokens.first(rows));
  }
  state.head(static_cast<int64_t>(rows) - 1);
  return {state.work.logits, static_cast<size_t>(state.config.vocab_size)};
}

template <class T>
std::vector<int32_t> generate(Decoder<T>& decoder, std::span<const int32_t> prompt, int64_t max_tokens, const Sampling& sampling,
                              std::span<const int32_t> stop) {
  std::vector<int32_t> out;
  std::span<const int32_t> next = prompt;
  while (static_cast<int64_t>(out.size()) < max_tokens) {
    const int32_t token = choose(decoder.append(next), sampling, out.size());
    out.push_back(token);
    if (std::ranges::find(stop, token) != stop.end()) break;
    next = std::span(&out.back(), 1);
  }
  return out;
}

template class Decoder<bf16>;
template class Decoder<float>;
template std::vector<int32_t> generate(Decoder<bf16>&, std::span<const int32_t>, int64_t, const Sampling&, std::span<const int32_t>);
template std::vector<int32_t> generate(Decoder<float>&, std::span<const int32_t>, int64_t, const Sampling&, std::span<const int32_t>);

}  // namespace dz::model
