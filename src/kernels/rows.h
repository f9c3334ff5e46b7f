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

// The GEMM order over rows, for column sums: blocks of 32 rows that restart at each multiple of `segment` rows (0: never), in each block one
// chain over its even rows and one over its odd rows.
inline constexpr int64_t kColumnBlock = 32;

struct RowBlock {
  int64_t first = 0, count = 0;  // rows; count is at most kColumnBlock
};
int64_t row_blocks(int64_t rows, int64_t segment);
RowBlock row_block(int64_t rows, int64_t segment, int64_t block);

// g = dy * weight, n = x * r, c = (row sum of fma(g, n)) / float(width); dx = round(fma(-n, c, g) * r).
// On the way the two chains of the weight's gradient for each block of rows, e = fma(dy, n, e) with n rounded first; missing rows count as +0.
// norm_weight_grad adds them up: so dy and x are read once, by any number of threads. Unit: a block.
template <class T>
struct RmsNormBackward {
  int64_t rows = 0, width = 0, segment = 0;
  const T* dy = nullptr;          // [rows, width]
  const T* x = nullptr;           // [rows, width]
  const float* weight = nullptr;  // [width]
  const float* rstd = nullptr;    // [rows]
  T* dx = nullptr;                // [rows, width]; may be dy
  float* chains = nullptr;        // [row_blocks(rows, segment), 2, width]: even, odd
};

// grad[j] = grad[j] + (even + odd), blocks ascending. Unit: a column.
struct NormWeightGrad {
  int64_t blocks = 0, width = 0;
  const float* chains = nullptr;  // [blocks, 2, width]
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

// First undoes RoPE in f32: d[j] = fma(dy[j + h], sin, dy[j] * cos), d[j + h] = fma(-dy[j], sin, dy[j + h] * cos); then the norm's
// input gradient and chains as in RmsNormBackward on f32 d, segments being `positions` rows. Unit: a block.
template <class T>
struct QkNormRopeBackward {
  int64_t rows = 0, heads = 0, head_dim = 0;
  int64_t positions = 0;
  const float* dy = nullptr;  // [rows, heads * head_dim] f32
  const T* x = nullptr;       // [rows, heads * head_dim]: the norm's input
  const float* weight = nullptr;
  const float* rstd = nullptr;
  const float* cos = nullptr;  // [positions, head_dim / 2]
  const float* sin = nullptr;
  T* dx = nullptr;          // [rows, heads * head_dim]
  float* chains = nullptr;  // [row_blocks(rows, positions), 2, heads * head_dim]
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
void norm_weight_grad(const NormWeightGrad& args, ThreadPool& pool);
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
