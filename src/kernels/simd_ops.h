// The vector forms of every op but the matrix product, compiled from simd/ once for each instruction set.
#pragma once

namespace dz::kernels {

struct Table;

// Replace every entry but the matrix product and the name; the CPU must have the instructions.
namespace avx2 {
void fill_ops(Table& table);
}
namespace avx512 {
void fill_ops(Table& table);
}
namespace avx512_bf16 {
void fill_ops(Table& table);
}

}  // namespace dz::kernels
