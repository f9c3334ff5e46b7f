// Enters the vector forms into a table.
#include "kernels/simd/ops.h"
#include "kernels/table.h"

namespace dz::kernels::DZ_SIMD {
namespace {

template <class T>
void fill_typed(TypedForms<T>& forms) {
  forms.rmsnorm_forward = &rmsnorm_forward<T>;
  forms.rmsnorm_backward = &rmsnorm_backward<T>;
  forms.bias_grad = &bias_grad<T>;
  forms.qk_norm_rope_forward = &qk_norm_rope_forward<T>;
  forms.qk_norm_rope_backward = &qk_norm_rope_backward<T>;
  forms.swiglu_forward = &swiglu_forward<T>;
  forms.swiglu_backward = &swiglu_backward<T>;
  forms.embedding_forward = &embedding_forward<T>;
  forms.embedding_grad = &embedding_grad<T>;
  forms.attention_forward = &attention_forward<T>;
  forms.attention_backward = &attention_backward<T>;
  forms.cross_entropy = &cross_entropy<T>;
}

}  // namespace

void fill_ops(Table& table) {
  fill_typed(table.bf16_forms);
  fill_typed(table.f32_forms);
  table.norm_weight_grad = &norm_weight_grad;
  table.add = &add;
  table.cast_to_bf16 = &cast_to_bf16;
  table.squared_norms = &squared_norms;
  table.adamw = &adamw;
  table.muon_momentum = &muon_momentum;
  table.muon_normalize = &muon_normalize;
  table.muon_combine = &muon_combine;
  table.muon_apply = &muon_apply;
}

}  // namespace dz::kernels::DZ_SIMD
