// The blocked, threaded matrix product around a form's packing and register tile.
#pragma once

#include "kernels/gemm.h"
#include "kernels/gemm_form.h"
#include "kernels/table.h"

namespace dz::kernels {

// `product` in the contract's order. pool null: on the calling thread. Small products use the stack only; for few rows the caller
// keeps A as it packed it for the next call; for large ones each thread that takes part keeps a few MiB: what it packed, and sums on their way.
template <class T>
void run_gemm(const GemmForm& form, const Gemm<T>& product, ThreadPool* pool);

// The products of a vector instruction set into its table. AVX512_BF16 and AMX multiply f32 as AVX-512 does.
void fill_gemm(Isa isa, Table& table);

}  // namespace dz::kernels
