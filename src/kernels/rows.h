// Row-wise ops of the transformer block: norms, RoPE, SwiGLU, embedding. Shapes are row-major and contiguous unless said.
// T, the compute type, is bf16 or float; `round` is its rounding point (none for float). Row sums use the 16-lane order of docs/numerics.md.
// Each Args struct names its unit: the thing that one task owns; any split of units gives the same bits.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace dz {
class ThreadPool;
}

namespace dz::kernels {

// r = 1 / sqrt(mean(x^2) + eps); y = round(residual + (x * r) * weight), without `residual +` when it is null. Unit: a row.
template <class T>
struct RmsNormForward {
  int64_t rows = 0, width = 0;
  float eps = 0;
  const T* x = nullptr;           // [rows, width]
  const float* weight = nullptr;  // [width]
  const T* residual = nullptr;    // [rows, width] or null; may be y
  T* y = nullptr;                 // [rows, width]
  float* rstd = nullptr;          // [rows], kept for backward
};

// g = dy * weight, n = x * r, c = (row sum of fma(g, n)) / float(width); dx = round(fma(-n, c, g) * r). Unit: a row.
template <class T>
struct RmsNormBackward {
  int64_t rows = 0, width = 0;
  const T* dy = nullptr;          // [rows, width]
  const T* x = nullptr;           // [rows, width]
  const float* weight = nullptr;  // [width]
  const float* rstd = nullptr;    // [rows]
  T* dx = nullptr;                // [rows, width]; may be dy
};

// grad[j] += column sum of dy * (x * r) in the GEMM order over rows, e = fma(dy, x r, e) with x r rounded first; the 32-row blocks restart at
// each multiple of `segment` rows. Exactly one of dy, dy_f32 is set. Unit: a column.
template <class T>
struct NormWeightGrad {
  int64_t rows = 0, width = 0, segment = 0;
  const T* dy = nullptr;          // [rows, width]
  const float* dy_f32 = nullptr;  // [rows, width]: the QK-norms, whose gradient is not rounded before
  const T* x = nullptr;           // [rows, width]
  const float* rstd = nullptr;    // [rows]
  float* grad = nullptr;          // [width], accumulated
};

// grad[j] += column sum of dy in the same order with e = e + dy. Unit: a column.
template <class T>
struct BiasGrad {
  int64_t rows = 0, width = 0, segment = 0;
  const T* dy = nullptr;  // [rows, width]
  float* grad = nullptr;  // [width], accumulated
};

// QK-norm over the full width, then RoPE (rotate-half) per head, in f32 with one rounding. Unit: a row.
// n = (x * r) * weight; out[j] = round(fma(-n[j + h], sin[j], n[j] * cos[j])), out[j + h] = round(fma(n[j], sin[j], n[j + h] * cos[j])), h = head_dim
// / 2.
template <class T>
struct QkNormRopeForward {
  int64_t rows = 0, heads = 0, head_dim = 0;
  int64_t positions = 0;  // row i has position first_position + i mod positions (positions = sequence length)
  int64_t first_position = 0;
  float eps = 0;
  const T* x = nullptr;           // [rows, heads * head_dim]
  const float* weight = nullptr;  // [heads * head_dim]
  const float* cos = nullptr;     // [first_position + positions, head_dim / 2]
  const float* sin = nullptr;
  T* y = nullptr;         // [rows, heads * head_dim]
  float* rstd = nullptr;  // [rows]
};

// First undoes RoPE in place in f32: d[j] = fma(dy[j + h], sin, dy[j] * cos), d[j + h] = fma(-dy[j], sin, dy[j + h] * cos); then the norm's
// input gradient as in RmsNormBackward on f32 d. Unit: a row.
template <class T>
struct QkNormRopeBackward {
  int64_t rows = 0, heads = 0, head_dim = 0;
  int64_t positions = 0;
  float* dy = nullptr;   // [rows, heads * head_dim] f32; afterwards the gradient at the norm's output (for NormWeightGrad::dy_f32)
  const T* x = nullptr;  // [rows, heads * head_dim]: the norm's input
  const float* weight = nullptr;
  const float* rstd = nullptr;
  const float* cos = nullptr;  // [positions, head_dim / 2]
  const float* sin = nullptr;
  T* dx = nullptr;  // [rows, heads * head_dim]
};

// silu(g) = g / (1 + exp2(-g * log2 e)); out = round(silu(gate) * up). Unit: an element.
template <class T>
struct SwigluForward {
  int64_t count = 0;
  const T* gate = nullptr;
  const T* up = nullptr;
  T* out = nullptr;  // may be gate
};

// s = 1 / (1 + exp2(-g * log2 e)), silu = g * s: dup = round(dout * silu), dgate = round((dout * up) * (s * fma(g, 1 - s, 1))). `out`, when it is
// given, is swiglu_forward's once more: the next product's operand, from one reading of gate and up. Unit: an element.
template <class T>
struct SwigluBackward {
  int64_t count = 0;
  const T* dout = nullptr;
  const T* gate = nullptr;
  const T* up = nullptr;
  T* dgate = nullptr;  // may be dout
  T* dup = nullptr;
  T* out = nullptr;
};

// y[i] = round(table[tokens[i]]): the table stays in f32, since a step reads a few of its rows. Unit: a row. Tokens are checked before they
// come here.
template <class T>
struct EmbeddingForward {
  int64_t rows = 0, width = 0;
  const int32_t* tokens = nullptr;  // [rows]
  const float* table = nullptr;     // [vocab, width]
  T* y = nullptr;                   // [rows, width]
};

// grad[tokens[i], j] += dy[i, j], rows in order. Unit: a column.
template <class T>
struct EmbeddingGrad {
  int64_t rows = 0, width = 0;
  const int32_t* tokens = nullptr;
  const T* dy = nullptr;  // [rows, width]
  float* grad = nullptr;  // [vocab, width], accumulated
};

template <class T>
void rmsnorm_forward(const RmsNormForward<T>& args, ThreadPool& pool);
template <class T>
void rmsnorm_backward(const RmsNormBackward<T>& args, ThreadPool& pool);
template <class T>
void norm_weight_grad(const NormWeightGrad<T>& args, ThreadPool& pool);
template <class T>
void bias_grad(const BiasGrad<T>& args, ThreadPool& pool);
template <class T>
void qk_norm_rope_forward(const QkNormRopeForward<T>& args, ThreadPool& pool);
template <class T>
void qk_norm_rope_backward(const QkNormRopeBackward<T>& args, ThreadPool& pool);
template <class T>
void swiglu_forward(const SwigluForward<T>& args, ThreadPool& pool);
template <class T>
void swiglu_backward(const SwigluBackward<T>& args, ThreadPool& pool);
template <class T>
void embedding_forward(const EmbeddingForward<T>& args, ThreadPool& pool);
template <class T>
void embedding_grad(const EmbeddingGrad<T>& args, ThreadPool& pool);

}  // namespace dz::kernels
