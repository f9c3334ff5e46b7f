// NumPy's numpy.random.default_rng(seed), bit for bit: SeedSequence, PCG64 (XSL-RR) and those operations of Generator that data orders need
// (numpy/random/bit_generator.pyx, src/pcg64/pcg64.h, _generator.pyx, src/distributions/distributions.c; equal from 1.24 to 2.5).
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "data/big_seed.h"

namespace dz::data {

// The first `count` 32-bit words that numpy.random.SeedSequence(seed).generate_state gives.
std::vector<uint32_t> seed_sequence(const BigSeed& seed, int64_t count);

class NumpyGenerator {
 public:
  explicit NumpyGenerator(const BigSeed& seed);

  uint64_t raw64();
  uint32_t next32();                                // the low, then the high half of one raw64()
  double random();                                  // [0, 1), 53 bits
  int64_t integers(int64_t low, int64_t high);      // [low, high), Lemire's method; low < high
  uint64_t interval(uint64_t most);                 // [0, most], masked rejection: what shuffle and permutation draw with
  std::vector<int64_t> permutation(int64_t count);  // of 0 ... count - 1

  // Fisher-Yates from the end. Draws are made a block ahead of the swaps: a shuffle of more than the caches hold waits for memory otherwise.
  template <class T>
  void shuffle(std::span<T> items) {
    shuffle_by(
        items.size(), [&](size_t i, size_t j) { std::swap(items[i], items[j]); }, [&](size_t j) { __builtin_prefetch(items.data() + j, 1); });
  }

  // shuffle of a 2-D array along axis 0: whole rows of `columns` values.
  template <class T>
  void shuffle_rows(std::span<T> values, size_t columns) {
    shuffle_by(
        columns == 0 ? 0 : values.size() / columns,
        [&](size_t i, size_t j) {
          if (i != j) std::swap_ranges(values.begin() + i * columns, values.begin() + (i + 1) * columns, values.begin() + j * columns);
        },
        [](size_t) {});
  }

 private:
  template <class Swap, class Prefetch>
  void shuffle_by(size_t count, const Swap& swap, const Prefetch& prefetch) {
    constexpr size_t kBlock = 32;
    size_t partners[kBlock];
    for (size_t last = count == 0 ? 0 : count - 1; last >= 1;) {
      const size_t block = std::min(kBlock, last);
      for (size_t i = 0; i < block; ++i) {
        partners[i] = static_cast<size_t>(interval(last - i));
        prefetch(partners[i]);
      }
      for (size_t i = 0; i < block; ++i) swap(last - i, partners[i]);
      last -= block;
    }
  }

  __extension__ typedef unsigned __int128 Word128;
  Word128 state_ = 0, increment_ = 0;
  bool has_half_ = false;
  uint32_t half_ = 0;
};

}  // namespace dz::data
