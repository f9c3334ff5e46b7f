// One table of forms for each instruction set. The plain code in ref/ is the specification; every other form equals it bit for bit.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/attention.h"
#include "kernels/gemm.h"
#include "kernels/loss.h"
#include "kernels/muon.h"
#include "kernels/rows.h"
#include "kernels/state.h"

namespace dz::kernels {

enum class Isa : uint8_t { kScalar, kAvx2, kAvx512, kAvx512Bf16, kAmx };

// Runs the units [begin, end) of an op on the calling thread.
template <class Args>
using Form = void (*)(const Args& args, int64_t begin, int64_t end);

template <class T>
struct TypedForms {
  void (*gemm)(const Gemm<T>& product, ThreadPool* pool) = nullptr;  // pool null: on the calling thread
  Form<RmsNormForward<T>> rmsnorm_forward = nullptr;
  Form<RmsNormBackward<T>> rmsnorm_backward = nullptr;
  Form<BiasGrad<T>> bias_grad = nullptr;
  Form<QkNormRopeForward<T>> qk_norm_rope_forward = nullptr;
  Form<QkNormRopeBackward<T>> qk_norm_rope_backward = nullptr;
  Form<SwigluForward<T>> swiglu_forward = nullptr;
  Form<SwigluBackward<T>> swiglu_backward = nullptr;
  Form<EmbeddingForward<T>> embedding_forward = nullptr;
  Form<EmbeddingGrad<T>> embedding_grad = nullptr;
  Form<AttentionForward<T>> attention_forward = nullptr;
  Form<AttentionBackward<T>> attention_backward = nullptr;
  Form<CrossEntropy<T>> cross_entropy = nullptr;
};

struct Table {
  Isa isa = Isa::kScalar;
  TypedForms<bf16> bf16_forms;
  TypedForms<float> f32_forms;
  Form<NormWeightGrad> norm_weight_grad = nullptr;
  Form<Add> add = nullptr;
  Form<CastToBf16> cast_to_bf16 = nullptr;
  Form<SquaredNorms> squared_norms = nullptr;
  Form<AdamW> adamw = nullptr;
  Form<MuonMomentum> muon_momentum = nullptr;
  Form<MuonNormalize> muon_normalize = nullptr;
  Form<MuonCombine> muon_combine = nullptr;
  Form<MuonApply> muon_apply = nullptr;
};

std::string_view name_of(Isa isa);  // "scalar", "avx2", "avx512", "avx512_bf16", "amx"
bool cpu_has(Isa isa);              // the CPU and the operating system let it run
std::vector<Isa> available();       // of this CPU, scalar first
const Table& table_of(Isa isa);     // DZ_CHECK: cpu_has(isa)

// The table in use. Chosen at the first call: DZ_ISA if set (ConfigError when unknown or missing on this CPU; it never falls back), else the
// best form that passes the self-test; a form that fails is reported on stderr and left out.
const Table& active();
// For tests and `doctor`: makes `isa` the active table from here on.
void activate(Isa isa);

template <class T>
const TypedForms<T>& forms(const Table& table = active()) {
  if constexpr (sizeof(T) == sizeof(bf16)) {
    return table.bf16_forms;
  } else {
    return table.f32_forms;
  }
}

}  // namespace dz::kernels
