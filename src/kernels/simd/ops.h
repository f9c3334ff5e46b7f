// The vector forms of every op but the matrix product; signatures as in kernels/table.h, formulas as in the ops' own headers.
#pragma once

#include <cstdint>

#include "kernels/attention.h"
#include "kernels/loss.h"
#include "kernels/muon.h"
#include "kernels/rows.h"
#include "kernels/state.h"

namespace dz::kernels {

struct Table;

namespace DZ_SIMD {

template <class T>
void rmsnorm_forward(const RmsNormForward<T>& args, int64_t begin, int64_t end);
template <class T>
void rmsnorm_backward(const RmsNormBackward<T>& args, int64_t begin, int64_t end);
void norm_weight_grad(const NormWeightGrad& args, int64_t begin, int64_t end);
template <class T>
void bias_grad(const BiasGrad<T>& args, int64_t begin, int64_t end);
template <class T>
void qk_norm_rope_forward(const QkNormRopeForward<T>& args, int64_t begin, int64_t end);
template <class T>
void qk_norm_rope_backward(const QkNormRopeBackward<T>& args, int64_t begin, int64_t end);
template <class T>
void swiglu_forward(const SwigluForward<T>& args, int64_t begin, int64_t end);
template <class T>
void swiglu_backward(const SwigluBackward<T>& args, int64_t begin, int64_t end);
template <class T>
void embedding_forward(const EmbeddingForward<T>& args, int64_t begin, int64_t end);
template <class T>
void embedding_grad(const EmbeddingGrad<T>& args, int64_t begin, int64_t end);
template <class T>
void attention_forward(const AttentionForward<T>& args, int64_t begin, int64_t end);
template <class T>
void attention_backward(const AttentionBackward<T>& args, int64_t begin, int64_t end);
template <class T>
void cross_entropy(const CrossEntropy<T>& args, int64_t begin, int64_t end);
void add(const Add& args, int64_t begin, int64_t end);
void cast_to_bf16(const CastToBf16& args, int64_t begin, int64_t end);
void squared_norms(const SquaredNorms& args, int64_t begin, int64_t end);
void adamw(const AdamW& args, int64_t begin, int64_t end);
void muon_momentum(const MuonMomentum& args, int64_t begin, int64_t end);
void muon_normalize(const MuonNormalize& args, int64_t begin, int64_t end);
void muon_combine(const MuonCombine& args, int64_t begin, int64_t end);
void muon_apply(const MuonApply& args, int64_t begin, int64_t end);

// Puts the forms above into a table; the matrix product and the name stay as they are.
void fill_ops(Table& table);

}  // namespace DZ_SIMD
}  // namespace dz::kernels
