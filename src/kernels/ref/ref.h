// The plain scalar forms: the specification that every other form is compared with by memcmp.
#pragma once

#include "kernels/table.h"

namespace dz::kernels::ref {

void fill(Table& table);  // every entry

// The scalar product, also for the products inside scalar attention; pool null: on the calling thread.
template <class T>
void gemm(const Gemm<T>& product, ThreadPool* pool);

void fill_gemm(Table& table);
void fill_rows(Table& table);
void fill_columns(Table& table);
void fill_attention(Table& table);
void fill_loss(Table& table);
void fill_state(Table& table);
void fill_muon(Table& table);

}  // namespace dz::kernels::ref
