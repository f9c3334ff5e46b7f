// The memory of a forward and backward pass: one arena whose size is computed exactly before it is allocated.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/large_memory.h"
#include "model/config.h"
#include "model/transformer.h"

namespace dz::model {

// A tensor of the arena: all layers' q are one line.
struct ArenaLine {
  std::string name;
  int64_t bytes = 0;
};

// Hands out aligned pieces of one block. The first walk over a layout only counts, the second one gives pointers.
class Arena {
 public:
  template <class V>
  V* take(const char* name, int64_t count) {
    const size_t at = used_, bytes = (static_cast<size_t>(count) * sizeof(V) + kAlign - 1) / kAlign * kAlign;
    used_ += bytes;
    most_ = std::max(most_, used_);
    if (memory_) return reinterpret_cast<V*>(memory_.get() + at);
    note(name, static_cast<int64_t>(bytes));
    return nullptr;
  }
  // What is taken after `back_to(mark)` lies over what was taken since `mark()`: for tensors that are never in use together.
  size_t mark() const { return used_; }
  void back_to(size_t mark) { used_ = mark; }
  void to_the_end() { used_ = most_; }

  int64_t bytes() const { return static_cast<int64_t>(most_); }
  const std::vector<ArenaLine>& lines() const { return lines_; }
  void allocate() {
    memory_.reset(static_cast<std::byte*>(allocate_large(most_)));
    used_ = 0;
  }

 private:
  static constexpr size_t kAlign = 64;
  struct Free {
    void operator()(std::byte* block) const { free_large(block); }
  };
  void note(const char* name, int64_t bytes);

  std::unique_ptr<std::byte, Free> memory_;
  size_t used_ = 0, most_ = 0;
  std::vector<ArenaLine> lines_;
};

// What the backward pass of a layer needs of its forward pass, besides the layer's input. Each is [rows, its width].
template <class T>
struct LayerActivations {
  T *q = nullptr, *k = nullptr;  // projections
  T* q_turned = nullptr;         // after QK-norm and RoPE
  T* k_turned = nullptr;
  T *v = nullptr, *attention = nullptr, *o = nullptr;
  T* middle = nullptr;  // the residual stream after attention
  T *gate = nullptr, *up = nullptr, *down = nullptr;
  float *q_rstd = nullptr, *k_rstd = nullptr, *o_rstd = nullptr, *down_rstd = nullptr;  // [rows]
  float *row_max = nullptr, *row_scale = nullptr;                                       // [instances, heads, seq]
};

template <class T>
struct LayerGradients {
  T* residual = nullptr;  // [rows, d_model]: dh, updated in place from layer to layer
  T* branch = nullptr;    // [rows, d_model]: at the output of attention or mlp
  T *gate = nullptr, *up = nullptr;
  T* attention = nullptr;  // [rows, q_width]; afterwards dq in the compute type
  T *k = nullptr, *v = nullptr;
  float *q_f32 = nullptr, *k_f32 = nullptr;
  float* sum = nullptr;     // [rows, d_model]: the accumulator of a dX with several sources
  float* chains = nullptr;  // [32-row blocks, 2, the widest norm]: of a norm's weight gradient
};

// The tensors of a Workspace without allocating it. `bytes`: of the arena, less than their sum because some lie over others.
template <class T>
std::vector<ArenaLine> activation_lines(const ModelConfig& config, const Limits& limits, int64_t* bytes);

template <class T>
struct Workspace {
  Workspace(const ModelConfig& config, const Limits& limits);

  Arena arena;
  int64_t bytes = 0;
  std::vector<T*> residual;                 // [n_layers + 1] of [rows, d_model]: the input of each layer, the output of the last
  std::vector<LayerActivations<T>> layers;  // one a layer, or one for all without a backward pass; what is computed again is one for all
  T* silu = nullptr;                        // [rows, d_ff]: silu(gate) * up, cheaper to compute again than to keep
  T* normed = nullptr;                      // [rows, d_model]: after the final norm
  float* final_rstd = nullptr;              // [rows]
  LayerGradients<T> gradients;
  int64_t chunk_rows = 0;
  float* logits = nullptr;            // [chunk_rows, vocab_size]; over the scratch of the layers
  float *ce = nullptr, *z = nullptr;  // [rows]

  LayerActivations<T>& of_layer(int64_t layer) { return layers[layers.size() == 1 ? 0 : static_cast<size_t>(layer)]; }

 private:
  friend std::vector<ArenaLine> activation_lines<T>(const ModelConfig&, const Limits&, int64_t*);
  Workspace() = default;
  void lay_out(const ModelConfig& config, const Limits& limits);
  void lay_out_layers(const ModelConfig& config, const Limits& limits);
  void lay_out_scratch(const ModelConfig& config, const Limits& limits);
};

// The rows of a chunk of logits: `wanted`, or about equal parts of an instance of at most 512 MB; a multiple of 32, at least 32.
int64_t head_chunk_rows(int64_t wanted, int64_t vocab_size, int64_t seq);

}  // namespace dz::model
