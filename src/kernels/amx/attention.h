// The forms of attention that AMX has of its own: bf16. Signatures as in kernels/table.h.
#pragma once

#include "kernels/attention.h"

namespace dz::kernels::avx512_bf16 {

// Takes over where there are few queries.
template <class T>
void attention_forward(const AttentionForward<T>& args, int64_t begin, int64_t end);

}  // namespace dz::kernels::avx512_bf16

namespace dz::kernels::amx {

void attention_forward(const AttentionForward<bf16>& args, int64_t begin, int64_t end);
void attention_backward(const AttentionBackward<bf16>& args, int64_t begin, int64_t end);

}  // namespace dz::kernels::amx
