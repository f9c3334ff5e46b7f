// Norms, RoPE, SwiGLU and embedding in scalar code; the formulas and their order are in rows.h.
#include "kernels/rows.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/ref/ref.h"
#include "numerics/sums.h"

namespace dz::kernels::ref {
namespace {

using numerics::fma;
using numerics::round_to;
using numerics::RowSum;
using numerics::to_float;

// r = 1 / sqrt(mean(x^2) + eps)
template <class T>
float reciprocal_rms(const T* x, int64_t width, float eps) {
  RowSum<float> squares;
  for (int64_t j = 0; j < width; ++j) squares.add_product(to_float(x[j]), to_float(x[j]));
  const float mean = squares.total() / static_cast<float>(width);
  return 1.0f / std::sqrt(mean + eps);
}

// c of the norm's input gradient: (row sum of g * n) / width with g = dy * weight, n = x * r.
template <class D, class T>
float norm_backward_mean(const D* dy, const T* x, const float* weight, float r, int64_t width) {
  RowSum<float> sum;
  for (int64_t j = 0; j < width; ++j) sum.add_product(to_float(dy[j]) * weight[j], to_float(x[j]) * r);
  return sum.total() / static_cast<float>(width);
}

template <class D, class T>
void norm_input_gradient(const D* dy, const T* x, const float* weight, float r, int64_t width, T* dx) {
  const float c = norm_backward_mean(dy, x, weight, r, width);
  for (int64_t j = 0; j < width; ++j) {
    const float g = to_float(dy[j]) * weight[j];
    const float n = to_float(x[j]) * r;
    dx[j] = round_to<T>(fma(-n, c, g) * r);
  }
}

// The chains of one block of rows: [2, width]. dy, x and rstd begin at the block.
template <class D, class T>
void norm_chains(const D* dy, const T* x, const float* rstd, int64_t count, int64_t width, float* chains) {
  for (int64_t j = 0; j < width; ++j) {
    float chain[2] = {0.0f, 0.0f};
    for (int64_t i = 0; i < kColumnBlock; ++i) {
      float& e = chain[i % 2];
      e = i < count ? fma(to_float(dy[i * width + j]), to_float(x[i * width + j]) * rstd[i], e) : e + 0.0f;  // the padding of the GEMM order
    }
    chains[j] = chain[0];
    chains[width + j] = chain[1];
  }
}

template <class T>
void rmsnorm_forward(const RmsNormForward<T>& args, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const int64_t at = i * args.width;
    const float r = reciprocal_rms(args.x + at, args.width, args.eps);
    for (int64_t j = 0; j < args.width; ++j) {
      float y = (to_float(args.x[at + j]) * r) * args.weight[j];
      if (args.residual != nullptr) y = to_float(args.residual[at + j]) + y;
      args.y[at + j] = round_to<T>(y);
    }
    args.rstd[i] = r;
  }
}

template <class T>
void rmsnorm_backward(const RmsNormBackward<T>& args, int64_t begin, int64_t end) {
  for (int64_t unit = begin; unit < end; ++unit) {
    const RowBlock block = row_block(args.rows, args.segment, unit);
    const int64_t start = block.first * args.width;
    norm_chains(args.dy + start, args.x + start, args.rstd + block.first, block.count, args.width, args.chains + 2 * unit * args.width);
    for (int64_t i = block.first; i < block.first + block.count; ++i) {
      const int64_t at = i * args.width;
      norm_input_gradient(args.dy + at, args.x + at, args.weight, args.rstd[i], args.width, args.dx + at);
    }
  }
}

template <class T>
void qk_norm_rope_forward(const QkNormRopeForward<T>& args, int64_t begin, int64_t end) {
  const int64_t width = args.heads * args.head_dim, half = args.head_dim / 2;
  for (int64_t i = begin; i < end; ++i) {
    const T* x = args.x + i * width;
    T* y = args.y + i * width;
    const float r = reciprocal_rms(x, width, args.eps);
    const int64_t position = args.first_position + i % args.positions;
    const float* cos = args.cos + position * half;
    const float* sin = args.sin + position * half;
    for (int64_t head = 0; head < args.heads; ++head) {
      for (int64_t j = 0; j < half; ++j) {
        const int64_t low = head * args.head_dim + j, high = low + half;
        const float n_low = (to_float(x[low]) * r) * args.weight[low];
        const float n_high = (to_float(x[high]) * r) * args.weight[high];
        y[low] = round_to<T>(fma(-n_high, sin[j], n_low * cos[j]));
        y[high] = round_to<T>(fma(n_low, sin[j], n_high * cos[j]));
      }
    }
    args.rstd[i] = r;
  }
}

// dy of one row before RoPE.
template <class T>
void undo_rope(const QkNormRopeBackward<T>& args, int64_t row, float* d) {
  const int64_t width = args.heads * args.head_dim, half = args.head_dim / 2;
  const float* dy = args.dy + row * width;
  const float* cos = args.cos + row % args.positions * half;
  const float* sin = args.sin + row % args.positions * half;
  for (int64_t head = 0; head < args.heads; ++head) {
    for (int64_t j = 0; j < half; ++j) {
      const int64_t low = head * args.head_dim + j, high = low + half;
      d[low] = fma(dy[high], sin[j], dy[low] * cos[j]);
      d[high] = fma(-dy[low], sin[j], dy[high] * cos[j]);
    }
  }
}

template <class T>
void qk_norm_rope_backward(const QkNormRopeBackward<T>& args, int64_t begin, int64_t end) {
  const int64_t width = args.heads * args.head_dim;
  std::vector<float> d(static_cast<size_t>(kColumnBlock * width));
  for (int64_t unit = begin; unit < end; ++unit) {
    const RowBlock block = row_block(args.rows, args.positions, unit);
    const T* x = args.x + block.first * width;
    for (int64_t i = 0; i < block.count; ++i) {
      float* row = d.data() + i * width;
      undo_rope(args, block.first + i, row);
      norm_input_gradient(row, x + i * width, args.weight, args.rstd[block.first + i], width, args.dx + (block.first + i) * width);
    }
    norm_chains(d.data(), x, args.rstd + block.first, block.count, width, args.chains + 2 * unit * width);
  }
}

// 1 / (1 + e^-g)
float sigmoid(float g) { return 1.0f / (1.0f + numerics::exp2(-g * numerics::kLog2E)); }

template <class T>
T swiglu(T gate, T up) {
  const float g = to_float(gate);
  const float silu = g / (1.0f + numerics::exp2(-g * numerics::kLog2E));
  return round_to<T>(silu * to_float(up));
}

template <class T>
void swiglu_forward(const SwigluForward<T>& args, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) args.out[i] = swiglu(args.gate[i], args.up[i]);
}

template <class T>
void swiglu_backward(const SwigluBackward<T>& args, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const float dout = to_float(args.dout[i]), g = to_float(args.gate[i]), up = to_float(args.up[i]);
    const float s = sigmoid(g);
    if (args.out != nullptr) args.out[i] = swiglu(args.gate[i], args.up[i]);
    args.dup[i] = round_to<T>(dout * (g * s));
    args.dgate[i] = round_to<T>((dout * up) * (s * fma(g, 1.0f - s, 1.0f)));
  }
}

template <class T>
void embedding_forward(const EmbeddingForward<T>& args, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const float* row = args.table + int64_t{args.tokens[i]} * args.width;
    for (int64_t j = 0; j < args.width; ++j) args.y[i * args.width + j] = round_to<T>(row[j]);
  }
}

template <class T>
void fill_forms(TypedForms<T>& forms) {
  forms.rmsnorm_forward = rmsnorm_forward<T>;
  forms.rmsnorm_backward = rmsnorm_backward<T>;
  forms.qk_norm_rope_forward = qk_norm_rope_forward<T>;
  forms.qk_norm_rope_backward = qk_norm_rope_backward<T>;
  forms.swiglu_forward = swiglu_forward<T>;
  forms.swiglu_backward = swiglu_backward<T>;
  forms.embedding_forward = embedding_forward<T>;
}

}  // namespace

void fill_rows(Table& table) {
  fill_forms(table.bf16_forms);
  fill_forms(table.f32_forms);
}

}  // namespace dz::kernels::ref
