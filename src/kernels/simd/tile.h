// Small products on stack scratch for attention, in the order of the matrix product (kernels/gemm.h).
//
// An operand is a tile of words. A word holds one k (float), or, where the CPU multiplies bf16 pairs, the k and k + 2 of one chain (Pair), so that
// both kinds are walked alike: words with even index make the even chain of a 32-block, words with odd index the odd one. Three layouts, `wide`
// being the row length padded to 32; past the end of a head or of an instance there is +0, so that blocks need no tails:
//   left     [rows][wide / k per word]   k along the elements of a row
//   right    [rows / k per word][wide]   k along the rows; also a left operand that is used transposed
//   columns  [wide / k per word][rows]   `left`, transposed: a right operand whose k lies along the elements of its rows
// For floats `left` and `right` are the same.
#pragma once

#include "kernels/simd/v16.h"

namespace dz::kernels::DZ_SIMD {

inline constexpr int64_t kTile = 64;  // kAttentionTile; queries or keys
inline constexpr int64_t kKBlock = 32;

DZ_INLINE int64_t padded(int64_t size) { return (size + kKBlock - 1) / kKBlock * kKBlock; }

template <class T>
struct WordFor {
  using Type = float;
};

#ifdef __AVX512BF16__

// VDPBF16PS computes fma(low, fma(high, sum)): high = k, low = k + 2 walks one chain two steps at a time.
struct Pair {
  uint32_t bits;
};

template <>
struct WordFor<bf16> {
  using Type = Pair;
};

DZ_INLINE V16 load_words(const Pair* p) { return {_mm512_castsi512_ps(_mm512_loadu_si512(p))}; }
DZ_INLINE V16 splat_word(Pair word) { return {_mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(word.bits)))}; }
DZ_INLINE V16 multiply_add(Pair, V16 a, V16 b, V16 c) {
  return {_mm512_dpbf16_ps(c.v, (__m512bh)_mm512_castps_si512(a.v), (__m512bh)_mm512_castps_si512(b.v))};
}

#endif

DZ_INLINE V16 load_words(const float* p) { return load(p); }
DZ_INLINE V16 splat_word(float word) { return splat(word); }
DZ_INLINE V16 multiply_add(float, V16 a, V16 b, V16 c) { return fma(a, b, c); }

// The k that a word holds.
template <class Word>
DZ_INLINE constexpr int64_t k_per_word() {
  return __is_same(Word, float) ? 1 : 2;
}

// The left operand of a product: words (i, w) at data[i * stride + w], or at data[w * stride + i] when it is used transposed.
template <class Word, bool transposed>
struct Left {
  const Word* data;
  int64_t stride;
  DZ_INLINE V16 at(int64_t i, int64_t w) const { return splat_word(transposed ? data[w * stride + i] : data[i * stride + w]); }
  DZ_INLINE Left below(int64_t i) const { return {data + (transposed ? i : i * stride), stride}; }
  DZ_INLINE Left after(int64_t w) const { return {data + (transposed ? w * stride : w), stride}; }
};

// A `left` tile of rows of `size` elements as a left operand, and a `right` tile as a transposed one.
template <class Word>
DZ_INLINE Left<Word, false> left(const Word* tile, int64_t size) {
  return {tile, padded(size) / k_per_word<Word>()};
}
template <class Word>
DZ_INLINE Left<Word, true> left_transposed(const Word* tile, int64_t size) {
  return {tile, padded(size)};
}

// A register tile of kRows x kVectors results. kChains: both chains of a block side by side, or one after the other when registers are few.
#ifdef __AVX512F__
inline constexpr int kRows = 4, kVectors = 2, kChains = 2;
#else
inline constexpr int kRows = 4, kVectors = 1, kChains = 1;
#endif

// The chains of one block: a are the words of kRows rows, b those of kVectors vectors of columns.
template <class Word, bool transposed>
DZ_INLINE void block_chains(Left<Word, transposed> a, const Word* b, int64_t b_stride, V16 (&chain)[2][kRows][kVectors]) {
  constexpr int kSteps = static_cast<int>(kKBlock / 2 / k_per_word<Word>());
#pragma GCC unroll 2
  for (int first = 0; first < 2; first += kChains) {
#pragma GCC unroll 4
    for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 2
      for (int parity = first; parity < first + kChains; ++parity) {
        const int64_t w = 2 * step + parity;
        V16 right[kVectors];
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) right[v] = load_words(b + w * b_stride + v * kLanes);
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) {
          const V16 left = a.at(r, w);
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v) chain[parity][r][v] = multiply_add(Word{}, left, right[v], chain[parity][r][v]);
        }
      }
    }
  }
}

// c = (accumulate ? c : +0) + (even + odd) for each block.
template <class Word, bool transposed>
DZ_INLINE void product_tile(Left<Word, transposed> a, int64_t blocks, const Word* b, float* c, int64_t columns, bool accumulate) {
  constexpr int64_t kWords = kKBlock / k_per_word<Word>();
  for (int64_t block = 0; block < blocks; ++block) {
    V16 chain[2][kRows][kVectors];
#pragma GCC unroll 16
    for (int i = 0; i < 2 * kRows * kVectors; ++i) chain[i % 2][i / 2 % kRows][i / 2 / kRows] = zero();
    block_chains(a, b, columns, chain);
#pragma GCC unroll 8
    for (int i = 0; i < kRows * kVectors; ++i) {
      const int r = i % kRows, v = i / kRows;
      float* to = c + r * columns + v * kLanes;
      const V16 before = block > 0 || accumulate ? load(to) : zero();
      store(to, before + (chain[0][r][v] + chain[1][r][v]));
    }
    a = a.after(kWords);
    b += kWords * columns;
  }
}

// c[i, j] = (accumulate ? c[i, j] : +0) + sum over k in the contract's order. `columns` is the row length of b and c. rows is rounded up to a
// multiple of 4 (those rows must exist); k and columns are multiples of 32.
template <class Word, bool transposed>
void product(Left<Word, transposed> a, const Word* b, float* c, int64_t rows, int64_t columns, int64_t k, bool accumulate) {
  for (int64_t j = 0; j < columns; j += kVectors * kLanes) {
    for (int64_t i = 0; i < rows; i += kRows) product_tile(a.below(i), k / kKBlock, b + j, c + i * columns + j, columns, accumulate);
  }
}

}  // namespace dz::kernels::DZ_SIMD
